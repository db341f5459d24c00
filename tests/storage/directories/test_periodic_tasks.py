import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from headwater.base.checks import InvariantError
from headwater.base.clocks import ManualClock
from headwater.sim.campaigns.broker_logs import run_inline
from headwater.storage.directories.periodic_tasks import (
    BlockingWork,
    PeriodicTask,
    Steps,
    run_periodically,
)

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as nothing else is to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        scheduled = [handle.when() for handle in self._scheduled]  # type: ignore[attr-defined]
        if not self._ready and scheduled:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, min(scheduled))
        super()._run_once()  # type: ignore[misc]


class Journal:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stop = asyncio.Event()

    def task(
        self, name: str, interval_ms: int, *, initial_delay_ms: int = 0, rounds: int | None = None
    ) -> PeriodicTask:
        count = 0

        def start(now_ms: int) -> Steps:
            nonlocal count
            count += 1
            loop = asyncio.get_running_loop()
            self.lines.append(f"{name} at {(loop.time() - 100) * 1000:.0f} ms")
            if count == rounds:
                self.stop.set()
            yield None

        return PeriodicTask(name, interval_ms, initial_delay_ms, start)


def drive(tasks: Callable[[Journal], list[PeriodicTask]]) -> list[str]:
    journal = Journal()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run_periodically(tasks(journal), journal.stop, ManualClock(), run_inline))
    return journal.lines


def test_each_task_has_its_own_period() -> None:
    lines = drive(
        lambda journal: [
            journal.task("fast", 100, initial_delay_ms=50, rounds=4),
            journal.task("slow", 250),
        ]
    )
    assert sorted(lines) == [
        "fast at 150 ms",
        "fast at 250 ms",
        "fast at 350 ms",
        "fast at 50 ms",
        "slow at 0 ms",
        "slow at 250 ms",
    ]


def test_a_period_of_ages_is_waited_for() -> None:
    month_ms = 30 * 86_400_000
    lines = drive(lambda journal: [journal.task("rare", month_ms, rounds=2)])
    assert lines == ["rare at 0 ms", f"rare at {month_ms} ms"]


def test_a_task_that_takes_longer_than_its_period_does_not_pile_up() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        starts: list[float] = []
        stop = asyncio.Event()

        async def slow_thread(work: Callable[[], T]) -> T:
            await asyncio.sleep(0.25)
            return work()

        def start(_now_ms: int) -> Steps:
            starts.append(round((loop.time() - 100) * 1000))
            if len(starts) == 3:
                stop.set()
            yield BlockingWork(lambda: None, lambda error: None)

        tasks = [PeriodicTask("slow", 100, 0, start)]
        await run_periodically(tasks, stop, ManualClock(), slow_thread)
        return starts

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(scenario()) == [0, 250, 500]


def test_the_round_under_way_is_finished_before_the_end() -> None:
    finished: list[str] = []

    async def scenario() -> None:
        stop = asyncio.Event()

        async def thread(work: Callable[[], T]) -> T:
            stop.set()
            await asyncio.sleep(1)
            return work()

        def start(_now_ms: int) -> Steps:
            for name in ("one", "two"):
                yield BlockingWork(lambda: None, lambda error: None, partial(finished.append, name))

        await run_periodically([PeriodicTask("t", 10, 0, start)], stop, ManualClock(), thread)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())
    assert finished == ["one", "two"]


def test_a_task_that_fails_ends_all_of_them() -> None:
    def start(_now_ms: int) -> Steps:
        raise RuntimeError("broken")
        yield

    with pytest.raises(RuntimeError, match="broken"):
        drive(lambda journal: [journal.task("other", 10), PeriodicTask("bad", 10, 30, start)])


def test_work_completes_or_fails() -> None:
    heard: list[str] = []

    def fault() -> None:
        raise OSError(5, "broken disk")

    def work(run: Callable[[], None]) -> BlockingWork:
        return BlockingWork(
            run, lambda error: heard.append(str(error.strerror)), lambda: heard.append("done")
        )

    work(lambda: None).run_now()
    work(fault).run_now()
    asyncio.run(work(lambda: None).run_in(run_inline))
    asyncio.run(work(fault).run_in(run_inline))
    assert heard == ["done", "broken disk"] * 2


def test_a_task_runs_on_the_spot() -> None:
    seen: list[int] = []

    def start(now_ms: int) -> Steps:
        yield None
        yield BlockingWork(lambda: seen.append(now_ms), lambda error: None)

    PeriodicTask("t", 10, 0, start).run_now(77)
    assert seen == [77]
    with pytest.raises(InvariantError):
        PeriodicTask("t", 0, 0, start)
