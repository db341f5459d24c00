"""The loop around queries, with queries and time that are played."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.pipeline.runs.run_directory import RunDirectory, StopRequest
from headwater.pipeline.runs.run_record import RunRecord, RunState
from headwater.pipeline.runs.running_pipeline import RunningPipeline, Wish


class FakeQuery:
    """A query that makes batches until it has made all, fails, or is stopped."""

    def __init__(self, name: str, *, batch_ms: int = 1000, pause_ms: int = 0) -> None:
        self.name: str | None = name
        self.batch_ms = batch_ms
        self.pause_ms = pause_ms
        self.batch_count_max = 10**9
        self.fails_after: int | None = None
        self.now_ms = 0
        self.stopped_ms: int | None = None
        self.was_in_batch = False

    @property
    def batch_count(self) -> int:
        """How many batches are done."""
        count = self._at() // (self.batch_ms + self.pause_ms)
        rest = self._at() % (self.batch_ms + self.pause_ms)
        return min(self.batch_count_max, count + (rest >= self.batch_ms))

    def _at(self) -> int:
        return self.now_ms if self.stopped_ms is None else self.stopped_ms

    @property
    def isActive(self) -> bool:
        return self.stopped_ms is None and not self._has_ended()

    def _has_ended(self) -> bool:
        return self.batch_count >= self.batch_count_max or self.exception() is not None

    @property
    def status(self) -> Mapping[str, Any]:
        in_batch = self._at() % (self.batch_ms + self.pause_ms) < self.batch_ms
        return {"isTriggerActive": self.isActive and in_batch}

    def _report(self, number: int) -> dict[str, Any]:
        return {
            "batchId": number,
            "numInputRows": 10,
            "timestamp": str(number),
            "sources": [],
            "durationMs": {"addBatch": 1},
        }

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:
        return self._report(self.batch_count - 1) if self.batch_count else None

    @property
    def recentProgress(self) -> Sequence[Mapping[str, Any]]:
        return [self._report(number) for number in range(self.batch_count)][-100:]

    def exception(self) -> BaseException | None:
        if self.fails_after is not None and self.batch_count >= self.fails_after:
            return RuntimeError("boom")
        return None

    def stop(self) -> None:
        self.was_in_batch = bool(self.status["isTriggerActive"])
        self.stopped_ms = self.now_ms


class FakeEnvironment:
    """Time that passes when somebody waits."""

    def __init__(self, queries: Sequence[FakeQuery]) -> None:
        self._queries = queries
        self._now_ms = 0
        self.at: dict[int, Callable[[], None]] = {}
        self.current_wish = Wish.GO_ON
        self.shown: list[RunRecord] = []

    def now_ms(self) -> int:
        return self._now_ms

    def wait(self, duration_s: float) -> None:
        self._now_ms += round(duration_s * 1000)
        assert self._now_ms < 1_000_000, "the run does not end"
        for query in self._queries:
            query.now_ms = self._now_ms
        for due_ms in [due_ms for due_ms in self.at if due_ms <= self._now_ms]:
            self.at.pop(due_ms)()

    def wish(self) -> Wish:
        return self.current_wish

    def show(self, record: RunRecord) -> None:
        self.shown.append(record)

    def later(self, wish: Wish, at_ms: int) -> None:
        def change() -> None:
            self.current_wish = wish

        self.at[at_ms] = change


def play(
    directory: Path, *queries: FakeQuery, grace_s: float = 60.0, endless: bool = False
) -> tuple[RunningPipeline, FakeEnvironment]:
    environment = FakeEnvironment(queries)
    record = RunRecord("pipe", RunState.STARTING, 1, "here", 0, 0)
    running = RunningPipeline(
        RunDirectory(directory),
        record,
        queries,
        environment,
        lambda failure, name: f"{name}: {failure}",
        grace_s,
        lambda query: endless,
    )
    return running, environment


def test_a_run_ends_when_all_queries_have(tmp_path: Path) -> None:
    fast, slow = FakeQuery("fast", batch_ms=100), FakeQuery("slow")
    fast.batch_count_max, slow.batch_count_max = 7, 3
    running, environment = play(tmp_path, fast, slow)
    record = running.run()
    assert (record.state, record.error) == (RunState.FINISHED, "")
    assert [query.rows.read for query in record.queries] == [70, 30]
    assert record.ended_ms is not None and 3000 <= record.ended_ms < 4000
    assert RunDirectory(tmp_path).read() == record == environment.shown[-1]
    assert not any(query.is_active for query in record.queries)


def test_a_run_without_queries_is_finished(tmp_path: Path) -> None:
    assert play(tmp_path)[0].run().state is RunState.FINISHED


def test_one_that_fails_ends_the_others(tmp_path: Path) -> None:
    good, bad = FakeQuery("good", pause_ms=200), FakeQuery("bad")
    bad.fails_after = 2
    record = play(tmp_path, good, bad)[0].run()
    assert (record.state, record.error) == (RunState.FAILED, "bad: boom")
    assert good.stopped_ms is not None and not good.was_in_batch
    assert [query.error for query in record.queries] == ["", "bad: boom"]


def test_an_endless_query_that_ends_has_failed(tmp_path: Path) -> None:
    query = FakeQuery("q")
    query.batch_count_max = 2
    record = play(tmp_path, query, endless=True)[0].run()
    assert record.state is RunState.FAILED
    assert record.error == "'q' has ended without giving a reason; Spark's log may say why"


def test_an_endless_query_that_is_stopped_has_not(tmp_path: Path) -> None:
    running, environment = play(tmp_path, FakeQuery("q"), endless=True)
    environment.later(Wish.STOP, 1000)
    record = running.run()
    assert (record.state, record.error, record.queries[0].error) == (RunState.STOPPED, "", "")


@pytest.mark.parametrize("by_file", [True, False])
def test_an_orderly_end_waits_for_the_batch(tmp_path: Path, by_file: bool) -> None:
    query = FakeQuery("q", batch_ms=3000, pause_ms=200)
    running, environment = play(tmp_path, query)
    if by_file:
        environment.at[3500] = lambda: RunDirectory(tmp_path).ask_to_stop(StopRequest.GRACEFULLY)
    else:
        environment.later(Wish.STOP, 3500)
    record = running.run()
    assert (record.state, query.batch_count) == (RunState.STOPPED, 2)
    assert query.stopped_ms is not None and 6200 <= query.stopped_ms <= 6300
    assert RunState.STOPPING in [shown.state for shown in environment.shown]
    assert record.queries[0].rows.read == 20


def test_a_query_without_a_pause_is_ended_right_after_a_batch(tmp_path: Path) -> None:
    query = FakeQuery("q", batch_ms=3000)
    running, environment = play(tmp_path, query)
    environment.later(Wish.STOP, 3500)
    running.run()
    assert query.stopped_ms is not None and 6000 <= query.stopped_ms <= 6100


def test_the_time_to_finish_a_batch_is_bounded(tmp_path: Path) -> None:
    query = FakeQuery("q", batch_ms=500_000)
    running, environment = play(tmp_path, query, grace_s=10.0)
    environment.later(Wish.STOP, 1000)
    assert running.run().state is RunState.STOPPED
    assert query.stopped_ms is not None and 10_900 <= query.stopped_ms <= 11_600


def test_an_end_now_waits_for_nothing(tmp_path: Path) -> None:
    query = FakeQuery("q", batch_ms=500_000)
    running, environment = play(tmp_path, query)
    environment.later(Wish.STOP, 1000)
    environment.at[4000] = lambda: RunDirectory(tmp_path).ask_to_stop(StopRequest.NOW)
    running.run()
    assert query.stopped_ms is not None and 4000 <= query.stopped_ms <= 4100


def test_the_record_tells_that_an_idle_run_is_alive(tmp_path: Path) -> None:
    query = FakeQuery("q", batch_ms=1, pause_ms=900_000)
    running, environment = play(tmp_path, query)
    seen = []

    def look() -> None:
        record = RunDirectory(tmp_path).read()
        seen.append(environment.now_ms() - record.updated_ms if record else None)

    environment.at = dict.fromkeys(range(1000, 60000, 700), look)
    environment.later(Wish.STOP, 61_000)
    running.run()
    assert all(age_ms is not None and age_ms <= 5500 for age_ms in seen) and len(seen) > 50


def test_a_query_that_cannot_be_stopped_does_not_keep_the_run(tmp_path: Path) -> None:
    class Stubborn(FakeQuery):
        def stop(self) -> None:
            raise TimeoutError("it does not end")

    running, environment = play(tmp_path, Stubborn("q"))
    environment.later(Wish.STOP_NOW, 1000)
    assert running.run().state is RunState.STOPPED
