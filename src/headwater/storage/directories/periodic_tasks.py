"""Work that comes back periodically and waits for disks, without holding up whoever owns the data.

A task is a name, a period, and a function that is told the time and yields what it needs done:
`BlockingWork`, whose `run` may wait in a thread, `Pause` where it has to go on later, or None where
others may have a turn. Everything
between two yields runs on the owner's thread, so no locks are needed. Who drives a task decides
what a thread is: `run_periodically` uses the event loop's time and the thread that it is given;
`run_now` does everything on the spot, for tests and for the last round before a shutdown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.base.checks import check
from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread

#: No timer is set for longer than that at once: event loops do not take just any number.
_WAIT_MAX_S: Final = 3600.0


def _nothing() -> None:
    """For work that leaves nothing to take note of."""


@dataclass(frozen=True, slots=True)
class BlockingWork:
    """Something that waits for a disk: `run` anywhere, then one of the others by the owner."""

    run: Callable[[], None]
    fail: Callable[[OSError], object]
    complete: Callable[[], None] = _nothing

    def run_now(self) -> None:
        try:
            self.run()
        except OSError as error:
            self.fail(error)
        else:
            self.complete()

    async def run_in(self, run_in_thread: RunInThread) -> None:
        try:
            await run_in_thread(self.run)
        except OSError as error:
            self.fail(error)
        else:
            self.complete()


@dataclass(frozen=True, slots=True)
class Pause:
    """The task goes on after so many milliseconds, or sooner with its next round."""

    duration_ms: float


Steps = Iterator[BlockingWork | Pause | None]


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    name: str
    interval_ms: int
    initial_delay_ms: int
    #: Does the task once; it gets the wall clock's milliseconds.
    start: Callable[[int], Steps]

    def __post_init__(self) -> None:
        check(self.interval_ms > 0, "the task %s has no interval", self.name)

    def run_now(self, now_ms: int) -> None:
        for work in self.start(now_ms):
            if isinstance(work, Pause):
                return  # What is left is for the next round.
            if work is not None:
                work.run_now()


async def run_periodically(
    tasks: Sequence[PeriodicTask], stop: asyncio.Event, clock: Clock, run_in_thread: RunInThread
) -> None:
    """Drive tasks until `stop` is set; returns when the last round of each is complete.

    Tasks run beside each other, but none beside itself. The first that fails ends all of them, and
    its exception is raised here.
    """
    repetitions = [
        asyncio.create_task(_repeat(task, stop, clock, run_in_thread), name=task.name)
        for task in tasks
    ]
    try:
        await asyncio.gather(*repetitions)
    finally:
        for repetition in repetitions:
            repetition.cancel()
        await asyncio.gather(*repetitions, return_exceptions=True)


async def _repeat(
    task: PeriodicTask, stop: asyncio.Event, clock: Clock, run_in_thread: RunInThread
) -> None:
    loop = asyncio.get_running_loop()
    due_s = loop.time() + task.initial_delay_ms / 1000
    while not await _is_set_before(stop, due_s):
        for work in task.start(clock.wall_ms()):
            if work is None:
                await asyncio.sleep(0)
            elif isinstance(work, Pause):
                if await _is_set_before(stop, loop.time() + work.duration_ms / 1000):
                    break
            else:
                await work.run_in(run_in_thread)
        # A round that took longer than the period is followed by the next, not by several.
        due_s = max(due_s + task.interval_ms / 1000, loop.time())


async def _is_set_before(stop: asyncio.Event, due_s: float) -> bool:
    """Wait until the loop's time is `due_s`; returns whether `stop` was set instead."""
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        wait_s = due_s - loop.time()
        if wait_s <= 0:
            return False
        try:
            async with asyncio.timeout(min(wait_s, _WAIT_MAX_S)):
                await stop.wait()
        except TimeoutError:
            continue
    return True
