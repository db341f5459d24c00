"""Compacting a broker's logs, one pass at a time, the dirtiest log first.

The cleaner decides and keeps the books; a pass itself runs elsewhere, wherever `run_job` takes it:
into a child process in a broker, on the spot in tests and in the simulator. A pass goes through
these steps:

1. choose a log (`cleanable`) and describe the job, with a ticket that says what it builds upon;
2. run the job (`compaction`), and put each new segment in place as soon as it is complete
   (`segment_swap`), unless the log was truncated or deleted meanwhile. So the disk needs room for
   little more than a segment, however large the log is;
3. note in the cleaner's checkpoint how far the log is clean.

A log whose compaction fails is marked uncleanable and left alone until the broker starts again: it
would fail the same way every time. What can pass is no reason for that, such as a child process
that died or a disk that was full; then the log is tried again after `log.cleaner.backoff.ms`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from headwater.base.clocks import Clock
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.storage.compaction.cleanable import (
    DirtySection,
    dirty_section,
    filthiest,
    valid_dirty_offset,
)
from headwater.storage.compaction.cleaned_segment import remove_files_at
from headwater.storage.compaction.cleaner_process import CompactionInterruptedError
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import (
    CleanedGroup,
    CompactionJob,
    CompactionResult,
)
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.segment_swap import CompactionTicket, SegmentSwap
from headwater.storage.disk.files import FileSystem
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog

_logger = logging.getLogger(__name__)

#: Yields the new segments of a job as they become complete, and at last its result.
RunJob = Callable[[CompactionJob], AsyncGenerator[CleanedGroup | CompactionResult, None]]
#: Makes the first dirty offset of a log durable.
SaveProgress = Callable[[PartitionLog, int], Awaitable[None]]


def _do_nothing() -> None:
    """For a runner that holds nothing which it could give back."""


def inline_runner(files: FileSystem, clock: Clock) -> RunJob:
    """Runs jobs on the spot, for tests and the simulator."""

    async def run(job: CompactionJob) -> AsyncGenerator[CleanedGroup | CompactionResult, None]:
        for item in compact(job, files, clock):
            yield item

    return run


@dataclass
class Cleaner:
    config: CleanerConfig
    clock: Clock
    run_job: RunJob
    run_in_thread: RunInThread
    save_progress: SaveProgress
    #: Called when there is nothing to compact for a while.
    on_idle: Callable[[], None] = _do_nothing
    #: How far each log is clean, as the checkpoints said at the start and since then.
    first_dirty_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    #: Why these logs are not compacted any more.
    uncleanable: dict[TopicPartition, str] = field(default_factory=dict)
    #: Share of the dirtiest log's bytes that are dirty, in percent, when it was last looked at.
    max_dirty_percent: float = 0.0
    last_result: CompactionResult | None = None
    last_run_ms: int | None = None
    #: Directories of logs that a pass is under way for: a log may be deleted and made anew in
    #: the same place while a child still reads the old one.
    _in_progress: set[str] = field(default_factory=set)
    #: When logs whose pass did not come to its end are tried again.
    _retry_ms: dict[TopicPartition, int] = field(default_factory=dict)

    # -- running ---------------------------------------------------------------------------------

    async def run(self, logs: Callable[[], Iterable[PartitionLog]], stop: asyncio.Event) -> None:
        """Compact until `stop` is set, `threads` logs at a time."""
        await asyncio.gather(*(self._work(logs, stop) for _ in range(self.config.threads)))

    async def _work(self, logs: Callable[[], Iterable[PartitionLog]], stop: asyncio.Event) -> None:
        while not stop.is_set():
            result = await self.clean_filthiest(logs())
            if result is None:
                self.on_idle()
                try:
                    async with asyncio.timeout(self.config.backoff_ms / 1000):
                        await stop.wait()
                except TimeoutError:
                    continue

    async def clean_once(self, logs: Iterable[PartitionLog]) -> list[CompactionResult]:
        """One pass over each of the dirtiest logs, as many as are compacted at the same time."""
        candidates = list(logs)
        workers = range(self.config.threads)
        results = await asyncio.gather(*(self.clean_filthiest(candidates) for _ in workers))
        return [result for result in results if result is not None]

    async def clean_filthiest(self, logs: Iterable[PartitionLog]) -> CompactionResult | None:
        """One pass over the log that needs it most; None if none does, or if it came to nothing."""
        now_ms = self.clock.wall_ms()
        candidates = [log for log in logs if self._may_clean(log, now_ms)]
        resets = self._reset_invalid(candidates)
        sections = [
            dirty_section(log, self.first_dirty_offsets[log.partition], now_ms)
            for log in candidates
        ]
        self.max_dirty_percent = 100 * max((each.dirty_ratio for each in sections), default=0.0)
        section = filthiest(sections)
        if section is None or self.config.io_max_bytes_per_second <= 0:
            for log in resets:
                await self._save(log, self.first_dirty_offsets[log.partition])
            return None
        # From here on nobody else chooses this log.
        directory = section.log.directory
        self._in_progress.add(directory)
        try:
            for log in resets:
                await self._save(log, self.first_dirty_offsets[log.partition])
            return await self._clean(section, now_ms)
        finally:
            self._in_progress.discard(directory)

    # -- choosing --------------------------------------------------------------------------------

    def _reset_invalid(self, logs: Iterable[PartitionLog]) -> list[PartitionLog]:
        """Begin anew where a checkpoint does not fit its log; returns where it did not."""
        resets = []
        for log in logs:
            checkpoint = self.first_dirty_offsets.get(log.partition)
            first_dirty_offset = valid_dirty_offset(log, checkpoint)
            self.first_dirty_offsets[log.partition] = first_dirty_offset
            if checkpoint is not None and checkpoint != first_dirty_offset:
                resets.append(log)
        return resets

    def _may_clean(self, log: PartitionLog, now_ms: int) -> bool:
        return (
            log.config.is_compacted
            and log.failure is None
            and log.partition not in self.uncleanable
            and self._retry_ms.get(log.partition, now_ms) <= now_ms
            and log.directory not in self._in_progress
            # Segments retired by the last pass would share their names with those of the next.
            and len(log.retired) == 0
        )

    # -- one pass --------------------------------------------------------------------------------

    async def _clean(self, section: DirtySection, now_ms: int) -> CompactionResult | None:
        log = section.log
        ticket, job = plan_compaction(section, self.config, now_ms)
        try:
            result = await self._run_and_swap(job, ticket, now_ms)
        except Exception as error:
            self._give_up(ticket, error, now_ms)
            return None
        if ticket.is_valid(()):  # After a truncation some of what was clean may have gone.
            await self._save(log, result.first_dirty_offset)
        self._retry_ms.pop(log.partition, None)
        self.last_result, self.last_run_ms = result, now_ms
        _report(log, result)
        return result

    async def _run_and_swap(
        self, job: CompactionJob, ticket: CompactionTicket, now_ms: int
    ) -> CompactionResult:
        async with contextlib.aclosing(self.run_job(job)) as items:
            async for item in items:
                if isinstance(item, CompactionResult):
                    return item
                swap = SegmentSwap(ticket, item, now_ms)
                if not await swap.finish_in(self.run_in_thread):
                    raise CompactionInterruptedError("the log was changed meanwhile")
        raise CompactionInterruptedError("the job ended without a result")

    def _give_up(self, ticket: CompactionTicket, error: Exception, now_ms: int) -> None:
        log = ticket.log
        is_changed = not ticket.is_valid(())
        self._sweep(ticket)
        if is_changed or isinstance(error, (CompactionInterruptedError, OSError, LogStorageError)):
            # Whatever it is, it can pass: other logs go first meanwhile.
            self._retry_ms[log.partition] = now_ms + self.config.backoff_ms
            _logger.warning("%s will be compacted later: %s", log.partition, error)
        else:
            self.uncleanable[log.partition] = str(error)
            _logger.error("%s cannot be compacted: %s", log.partition, error, exc_info=error)

    def _sweep(self, ticket: CompactionTicket) -> None:
        """A job that was killed could not clean up behind itself."""
        with contextlib.suppress(OSError):
            remove_files_at(ticket.log.files, ticket.directory, ticket.base_offsets)

    # -- progress --------------------------------------------------------------------------------

    async def _save(self, log: PartitionLog, first_dirty_offset: int) -> None:
        self.first_dirty_offsets[log.partition] = first_dirty_offset
        await self.save_progress(log, first_dirty_offset)

    async def log_truncated(self, log: PartitionLog, offset: int) -> None:
        """What is written from `offset` on is dirty, however far the log was clean before."""
        if self.first_dirty_offsets.get(log.partition, 0) > offset:
            await self._save(log, offset)

    def log_removed(self, partition: TopicPartition) -> None:
        self.first_dirty_offsets.pop(partition, None)
        self.uncleanable.pop(partition, None)
        self._retry_ms.pop(partition, None)


def _report(log: PartitionLog, result: CompactionResult) -> None:
    stats = result.stats
    _logger.info(
        "%s is compacted up to %d: %d of %d records and %d of %d bytes stay, in %d ms",
        log.partition,
        result.first_dirty_offset,
        stats.records.records_kept,
        stats.records.records_read,
        stats.bytes_after,
        stats.bytes_before,
        stats.elapsed_ms,
    )
