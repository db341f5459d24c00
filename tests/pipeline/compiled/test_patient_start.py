from typing import cast

from pyspark.sql.streaming.query import StreamingQuery

from headwater.pipeline.compiled.patient_start import ATTEMPTS, start_patiently


class FakeQuery:
    """A query that is starting for some looks, and then active or failed."""

    def __init__(self, looks: int, failure: str = "") -> None:
        self._looks = looks
        self._failure = failure

    @property
    def isActive(self) -> bool:
        return self._looks > 0 or not self._failure

    @property
    def status(self) -> dict[str, str]:
        self._looks -= 1
        return {"message": "Initializing sources" if self._looks > 0 else "Waiting for data"}

    def exception(self) -> Exception | None:
        return Exception(self._failure) if self._failure and not self.isActive else None


def _start(queries: list[FakeQuery]) -> tuple[object, int]:
    started = iter(queries)
    query = start_patiently(lambda: cast(StreamingQuery, next(started)))
    return query, len(queries) - len(list(started))


def test_it_waits_until_the_sources_are_there() -> None:
    slow = FakeQuery(looks=3)
    query, count = _start([slow])
    assert query is slow
    assert count == 1
    assert slow._looks <= 0


def test_a_machine_that_was_too_slow_gets_another_chance_and_no_other_failure_does() -> None:
    slow = [FakeQuery(1, "Python worker failed to connect back") for _ in range(ATTEMPTS + 3)]
    good = FakeQuery(1)
    assert _start([*slow[:2], good]) == (good, 3)
    assert _start(slow)[1] == ATTEMPTS
    assert _start([FakeQuery(1, "no such topic"), good])[1] == 1
