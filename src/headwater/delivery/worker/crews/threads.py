"""Handles records in several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.worker.crews.crew import FAILURES
from headwater.delivery.worker.decisions.lanes import Turn
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.dispatch import Handle


class ThreadCrew:
    """`wake` has whoever polls look at what has changed."""

    def __init__(
        self, work: Work, handle: Handle, thread_count: int, wake: Callable[[], None]
    ) -> None:
        self._work = work
        self._handle = handle
        self._wake = wake
        self._has_work = threading.Condition(work.lock)
        self._is_quieter = threading.Condition(work.lock)
        self._is_stopping = False
        self.failure: BaseException | None = None
        self.left: list[ConsumerRecord] = []
        self._threads = [
            threading.Thread(target=self._run, name=f"worker-{number}", daemon=True)
            for number in range(thread_count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    async def handle(self, records: list[ConsumerRecord]) -> None:
        with self._work.lock:
            self._work.begin(records)
            self._has_work.notify(len(records))

    def stop(self) -> None:
        """What waits is the work's to drop; the rest is handled."""

    async def quiet(
        self, timeout_s: float, partitions: Collection[TopicPartition] | None = None
    ) -> bool:
        with self._work.lock:
            self._is_quieter.wait_for(
                lambda: not self._work.unfinished_count(partitions) or not self._is_manned,
                timeout_s,
            )
            return not self._work.unfinished_count(partitions)

    @property
    def _is_manned(self) -> bool:
        """Whether anybody is left to handle records."""
        return any(thread.is_alive() for thread in self._threads)

    async def end(self) -> None:
        with self._work.lock:
            self._is_stopping = True
            self._has_work.notify_all()
            is_quiet = not self._work.unfinished_count()
        if is_quiet:
            for thread in self._threads:
                thread.join()

    def _next(self) -> Turn | None:
        with self._work.lock:
            while not self._is_stopping:
                now_s = time.monotonic()
                turn = self._work.take(now_s)
                if turn is not None:
                    return turn
                next_s = self._work.next_s
                self._has_work.wait(None if next_s is None else max(0.0, next_s - now_s))
        return None

    def _run(self) -> None:
        while (turn := self._next()) is not None:
            error: BaseException | None = None
            try:
                self._handle(turn.task.record)
            except FAILURES as failed:
                error = failed
            except BaseException as fatal:
                self._fail(turn, fatal)
                return
            self._work.finish(turn, error, time.monotonic())
            with self._work.lock:
                self._is_quieter.notify_all()
                # Its lane may have another record, or rest until a time that nobody waits for yet.
                self._has_work.notify()
                can_go_on = self._work.can_go_on()
            if can_go_on:
                self._wake()

    def _fail(self, turn: Turn, fatal: BaseException) -> None:
        with self._work.lock:
            self.failure = self.failure or fatal
            self._work.give_up(turn)
            self._is_quieter.notify_all()
        self._wake()
