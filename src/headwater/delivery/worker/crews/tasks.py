"""Handles records in several tasks of the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.worker.crews.crew import FAILURES, is_cancelled
from headwater.delivery.worker.decisions.lanes import Turn
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.dispatch import Handle


class TaskCrew:
    """`wake` has whoever polls look at what has changed."""

    def __init__(
        self, work: Work, handle: Handle, task_count: int, wake: Callable[[], None]
    ) -> None:
        self._work = work
        self._handle = handle
        self._task_count = task_count
        self._wake = wake
        self._is_stopping = False
        #: In the order in which they began.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.failure: BaseException | None = None
        self.left: list[ConsumerRecord] = []

    def start(self) -> None:
        """Tasks are made as there are records."""

    async def handle(self, records: list[ConsumerRecord]) -> None:
        self._work.begin(records)
        self._fill()

    def stop(self) -> None:
        """What waits is the work's to drop; the rest is handled."""

    async def quiet(
        self, timeout_s: float, partitions: Collection[TopicPartition] | None = None
    ) -> bool:
        end_s = asyncio.get_running_loop().time() + timeout_s
        while self._work.unfinished_count(partitions):
            left_s = end_s - asyncio.get_running_loop().time()
            if left_s <= 0 or not self._tasks:
                return False
            await asyncio.wait(
                list(self._tasks), timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
        return True

    async def end(self) -> None:
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _fill(self) -> None:
        """Have as many tasks as there may be."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        while not self._is_stopping and len(self._tasks) < self._task_count:
            turn = self._work.take(now_s)
            if turn is None:
                break
            task = loop.create_task(self._run(turn))
            self._tasks[task] = None
            task.add_done_callback(self._finished)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        next_s = self._work.next_s
        has_room = len(self._tasks) < self._task_count
        if next_s is not None and has_room and not self._is_stopping:
            # A lane that rests becomes ready without anything happening. While everybody is busy
            # the next to finish looks: a timer for what is due by then would go off all the time.
            self._timer = loop.call_later(max(0.0, next_s - now_s), self._fill)

    async def _run(self, turn: Turn) -> None:
        error: BaseException | None = None
        try:
            await self._handle(turn.task.record)
        except BaseException as failed:
            if not isinstance(failed, FAILURES) or is_cancelled(failed):
                self._give_up(turn, failed)
                return
            error = failed
        self._work.finish(turn, error, asyncio.get_running_loop().time())

    def _give_up(self, turn: Turn, fatal: BaseException) -> None:
        self._work.give_up(turn)
        if not (self._is_stopping and isinstance(fatal, asyncio.CancelledError)):
            self.failure = self.failure or fatal
            self._wake()

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._fill()
        if self._work.can_go_on():
            self._wake()
