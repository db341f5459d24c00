"""Parked operations are completed once: by their event or by their time, whichever comes first."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.base.loop_timer import LoopTimer
from headwater.replication.waiting.purgatory import DelayedOperation, Purgatory


class _Waiting(DelayedOperation[str]):
    """Done when as many events have come as it wants."""

    def __init__(self, wanted: int, log: list[str], name: str = "operation") -> None:
        super().__init__()
        self.wanted = wanted
        self.name = name
        self.log = log

    def try_complete(self, key: str | None) -> bool:
        if key is not None:
            self.wanted -= 1
        return self.wanted <= 0

    def on_expiration(self) -> None:
        self.log.append(f"{self.name} expired")

    def on_complete(self) -> None:
        self.log.append(f"{self.name} completed")


def _run(body: Callable[[Purgatory[str], LoopTimer], object]) -> None:
    async def main() -> None:
        timer = LoopTimer(asyncio.get_running_loop())
        body(Purgatory(timer), timer)
        timer.close()

    asyncio.run(main())


def test_an_operation_whose_condition_holds_is_not_parked() -> None:
    log: list[str] = []

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        assert purgatory.try_complete_else_park(_Waiting(0, log), 1000, ["a"])
        assert len(purgatory) == 0
        assert len(timer) == 0

    _run(body)
    assert log == ["operation completed"]


def test_the_event_of_any_key_completes_it_and_it_leaves_all_keys_and_the_wheel() -> None:
    log: list[str] = []

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        assert not purgatory.try_complete_else_park(_Waiting(2, log), 1000, ["a", "b"])
        assert purgatory.check("a") == 0
        assert purgatory.check("c") == 0
        assert purgatory.check("b") == 1
        assert purgatory.check("a") == 0
        assert len(purgatory) == 0
        assert len(timer) == 0

    _run(body)
    assert log == ["operation completed"]


def test_no_time_at_all_is_an_expiration() -> None:
    log: list[str] = []

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        assert purgatory.try_complete_else_park(_Waiting(1, log), 0, ["a"])
        assert purgatory.expired_count == 1

    _run(body)
    assert log == ["operation expired", "operation completed"]


def test_time_completes_what_no_event_does() -> None:
    log: list[str] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()
        timer = LoopTimer(loop)
        purgatory: Purgatory[str] = Purgatory(timer)
        done = loop.create_future()

        class Timed(_Waiting):
            def on_complete(self) -> None:
                super().on_complete()
                done.set_result(loop.time())

        started_s = loop.time()
        purgatory.park(Timed(1, log), 20, ["a"])
        ended_s: float = await done
        assert len(purgatory) == 0
        timer.close()
        return ended_s - started_s

    assert asyncio.run(main()) >= 0.02
    assert log == ["operation expired", "operation completed"]


def test_a_cancelled_operation_is_neither_completed_nor_kept() -> None:
    log: list[str] = []

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        operation = _Waiting(1, log)
        purgatory.park(operation, 1000, ["a"])
        operation.cancel()
        assert len(purgatory) == len(timer) == purgatory.check("a") == 0
        assert not operation.complete()

    _run(body)
    assert log == []


def test_an_operation_cannot_be_parked_twice() -> None:
    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        operation = _Waiting(1, [])
        purgatory.park(operation, 1000, ["a"])
        with pytest.raises(InvariantError):
            purgatory.park(operation, 1000, ["a"])

    _run(body)


def test_stopping_answers_everyone() -> None:
    log: list[str] = []

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        for name in "xyz":
            purgatory.park(_Waiting(1, log, name), 1000, [name])
        purgatory.complete_all()
        assert len(purgatory) == len(timer) == 0

    _run(body)
    assert log == [f"{name} {what}" for name in "xyz" for what in ("expired", "completed")]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sets(st.sampled_from("abc"), min_size=1)), max_size=8),
    st.lists(st.sampled_from("abc"), max_size=30),
)
def test_each_is_completed_once_when_its_events_have_come(
    operations: list[tuple[int, set[str]]], events: list[str]
) -> None:
    """A model that counts events per operation says who is done after each of them."""
    log: list[str] = []
    left = {str(number): wanted for number, (wanted, _) in enumerate(operations)}

    def body(purgatory: Purgatory[str], timer: LoopTimer) -> None:
        for number, (wanted, keys) in enumerate(operations):
            purgatory.park(_Waiting(wanted, log, str(number)), 10_000, sorted(keys))
        for event in events:
            expected = 0
            for name in list(left):
                if event in operations[int(name)][1]:
                    left[name] -= 1
                    if left[name] == 0:
                        del left[name]
                        expected += 1
            assert purgatory.check(event) == expected
            assert len(purgatory) == len(timer) == len(left)

    _run(body)
    assert len(log) == len(set(log)) == len(operations) - len(left)
