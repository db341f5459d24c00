"""One partition's shared fsyncs: asked for by appends, run one at a time.

Whoever needs an offset to be durable asks and is told by a callback. While a round runs, others
append and ask; the next round serves all of them. So the number of fsyncs does not depend on the
number of producers that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.threads import RunInThread
from headwater.storage.errors import LogStorageError
from headwater.storage.flush import SharedFsync
from headwater.storage.partition_log import PartitionLog


class FsyncRounds:
    """`on_durable` is called after every round, and when the disk has failed."""

    def __init__(
        self,
        log: PartitionLog,
        run_in_thread: RunInThread,
        tasks: BackgroundTasks,
        on_durable: Callable[[], None],
    ) -> None:
        self._log = log
        self._run_in_thread = run_in_thread
        self._tasks = tasks
        self._on_durable = on_durable
        self._shared_fsync = SharedFsync(log, run_in_thread)
        self._earlier_count = 0
        self._wanted_offset = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many rounds there were."""
        return self._earlier_count + self._shared_fsync.round_count

    def request(self, end_offset: int) -> None:
        """See to it that all in front of `end_offset` becomes durable."""
        if end_offset > self._wanted_offset:
            self._wanted_offset = end_offset
        if self._task is None:
            self._task = self._tasks.start(f"fsyncs of {self._log.partition}", self._run())

    def truncated(self) -> None:
        """The log was cut back: nobody waits for what it has lost."""
        self._wanted_offset = min(self._wanted_offset, self._log.log_end_offset)

    def replace_log(self, log: PartitionLog) -> None:
        """The log has moved to another directory, where it is durable to its end."""
        self._earlier_count = self.count
        self._log = log
        self._shared_fsync = SharedFsync(log, self._run_in_thread)
        self._on_durable()

    async def close(self) -> None:
        """Wait for a round under way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            while self._is_wanted:
                log = self._log
                try:
                    # What is wanted now; who asks for more meanwhile is served by the next round.
                    await self._shared_fsync.wait_until_durable(self._wanted_offset)
                except LogStorageError:
                    if log is self._log:
                        raise
                self._on_durable()
        except LogStorageError:
            self._on_durable()
        finally:
            self._task = None

    @property
    def _is_wanted(self) -> bool:
        log = self._log
        return log.flushed_offset < min(self._wanted_offset, log.record_end_offset)
