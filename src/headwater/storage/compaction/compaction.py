"""One pass of compaction over a log, as a job that can run anywhere.

A pass first reads the dirty part of the log into an offset map, as far as the map's memory goes.
Then it reads the log from its start to that point and writes what `compaction_filter` leaves of it
into new segments, named `.cleaned`. Several small segments become one, as long as it stays within
`segment.bytes`. The log itself is not touched: `segment_swap` puts the new segments in place.

The job is a value that can be sent to a child process, and so is its result. It reads files that
their owner may rename or cut in the meantime; then it fails, or its result is refused by the owner,
who knows. It opens nothing that is not there, lest it make a file in a log that was replaced.

All that a new segment holds is synced before it counts as complete; its name is not, because it is
about to change. A new segment that would be the same as its only old one is not handed out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from headwater.base.checks import check
from headwater.base.clocks import Clock
from headwater.storage.compaction.cleaned_segment import CleanedSegment, remove_files_at
from headwater.storage.compaction.cleaned_transactions import CleanedTransactions
from headwater.storage.compaction.compaction_filter import CompactionFilter
from headwater.storage.compaction.compaction_job import (
    CleanedGroup,
    CompactionJob,
    CompactionResult,
    CompactionStats,
    SegmentExtent,
    group_segments,
)
from headwater.storage.compaction.offset_map import OffsetMap
from headwater.storage.compaction.record_slices import read_section, slice_records
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from headwater.storage.segments.batch_scan import ScannedBatch, scan_batches, validate_entry
from headwater.storage.segments.segment_files import LOG, TRANSACTION_INDEX, segment_path
from headwater.wire.records import MAGIC_V2, decode_batch

_HANDLE_COUNT = 16

#: Told of all bytes that are read or written; it may wait, or raise to end the job.
Spend = Callable[[int], None]


def _spend_freely(_size_bytes: int) -> None:
    """For a job that nobody slows down."""


def compact(
    job: CompactionJob, files: FileSystem, clock: Clock, spend: Spend = _spend_freely
) -> Iterator[CleanedGroup | CompactionResult]:
    """Run a job: yields each new segment when it is complete, and at last the result.

    Segments are to be put in place in this order, and none whose predecessor was not: a tombstone
    must not go before what it deletes.
    """
    return _Pass(job, files, spend).run(clock)


class _Pass:
    def __init__(self, job: CompactionJob, files: FileSystem, spend: Spend) -> None:
        check(job.first_dirty_offset < job.end_offset, "%s: nothing is dirty", job.directory)
        self._job = job
        self._files = files
        self._handles = HandleCache(files, _HANDLE_COUNT)
        self._spend = spend
        self._stats = CompactionStats()
        self._offsets = OffsetMap(
            job.dedupe_buffer_bytes,
            job.load_factor,
            key_count_expected=job.end_offset - job.first_dirty_offset,
        )

    def run(self, clock: Clock) -> Iterator[CleanedGroup | CompactionResult]:
        job, stats = self._job, self._stats
        started_ms = clock.monotonic_ms()
        aborted = self._aborted_transactions()
        self._fill_offset_map(aborted)
        end_offset = self._offsets.latest_offset + 1
        record_filter = CompactionFilter(
            self._offsets,
            CleanedTransactions(aborted),
            job.active_producers,
            now_ms=job.now_ms,
            delete_retention_ms=job.config.delete_retention_ms,
        )
        stats.records = record_filter.stats
        stats.map_key_count = self._offsets.key_count
        stats.map_utilization = self._offsets.utilization
        covered = [each for each in job.segments if each.base_offset < end_offset]
        for group in group_segments(
            covered, job.config.segment_bytes, job.config.segment_index_bytes
        ):
            cleaned = self._clean(group, record_filter)
            if cleaned is not None:
                yield cleaned
        stats.elapsed_ms = clock.monotonic_ms() - started_ms
        yield CompactionResult(end_offset, stats)

    # -- the offset map --------------------------------------------------------------------------

    def _fill_offset_map(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Take in the dirty part up to its end, or until the map is full."""
        job = self._job
        transactions = CleanedTransactions(aborted)
        dirty = [each for each in job.segments if each.next_offset > job.first_dirty_offset]
        for segment in dirty:
            for batch in self._scan(segment):
                if not self._take_in(batch, transactions):
                    return
            self._offsets.advance_to(segment.next_offset - 1)

    def _take_in(self, batch: ScannedBatch, transactions: CleanedTransactions) -> bool:
        """False if the map has no room for a record of this batch."""
        header = batch.header
        first_dirty_offset = self._job.first_dirty_offset
        if header.last_offset < first_dirty_offset:
            return True
        validate_entry(batch.data, 0, header)
        count = header.record_count
        if header.is_delayed and header.magic == MAGIC_V2:
            transactions.observe_data(header)
        elif header.is_control and header.magic == MAGIC_V2:
            transactions.observe_control(header, batch.data)
        elif not transactions.observe_data(header):
            put = self._offsets.put
            records = _offsets_and_keys(batch)
            count = len(records)
            for offset, key in records:
                if offset >= first_dirty_offset and key is not None and not put(key, offset):
                    return False
        self._offsets.advance_to(header.last_offset)
        self._stats.map_records_read += count
        self._stats.map_bytes_read += header.size_bytes
        return True

    # -- cleaning --------------------------------------------------------------------------------

    def _clean(
        self, group: Sequence[SegmentExtent], record_filter: CompactionFilter
    ) -> CleanedGroup | None:
        """Write one new segment; None if it would be the same as the old one."""
        job = self._job
        old_base_offsets = tuple(each.base_offset for each in group)
        cleaned = CleanedSegment(
            self._files,
            self._handles,
            job.directory,
            group[0].base_offset,
            job.config,
            job.io_buffer_bytes,
        )
        is_changed = len(group) > 1
        is_complete = False
        try:
            for batch, is_last in _marking_last(b for each in group for b in self._scan(each)):
                left = record_filter.apply(batch, is_last=is_last)
                is_changed |= left is None or left.is_changed
                cleaned.add_aborted(record_filter.take_needed_entry())
                if left is not None:
                    self._spend(cleaned.append(left.data, left.header))
            if is_changed:
                cleaned.finish()
            is_complete = is_changed
        finally:
            cleaned.close()
            if not is_complete:
                with contextlib.suppress(OSError):
                    remove_files_at(self._files, job.directory, [group[0].base_offset])
        self._stats.bytes_before += sum([each.size_bytes for each in group])
        self._stats.bytes_after += cleaned.size_bytes
        if not is_changed:
            return None
        return CleanedGroup(old_base_offsets, group[0].base_offset, cleaned.size_bytes)

    # -- files -----------------------------------------------------------------------------------

    def _scan(self, segment: SegmentExtent) -> Iterator[ScannedBatch]:
        """A segment's batches, as far as it was written when the job was made."""
        file = self._files.open(segment_path(self._job.directory, segment.base_offset, LOG))
        try:
            chunk_bytes = self._job.io_buffer_bytes
            for batch in scan_batches(file, 0, segment.size_bytes, chunk_bytes=chunk_bytes):
                self._spend(batch.header.size_bytes)
                yield batch
        finally:
            file.close()

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """All whose records may be in the job's segments."""
        job = self._job
        found: list[AbortedTransaction] = []
        for base_offset in (*(each.base_offset for each in job.segments), *job.later_base_offsets):
            path = segment_path(job.directory, base_offset, TRANSACTION_INDEX)
            index = TransactionIndex(self._files, self._handles, path)
            try:
                transactions, is_complete = index.collect_aborted(0, job.end_offset)
            finally:
                index.close()
            found += transactions
            if is_complete:
                break
        return found


def _offsets_and_keys(batch: ScannedBatch) -> list[tuple[int, bytes | None]]:
    header = batch.header
    if header.magic < MAGIC_V2:
        return [(r.offset, r.key) for r in decode_batch(batch.data, check_crc=False)]
    slices = slice_records(read_section(batch.data, header), header)
    return [(offset, key) for _, _, offset, key, _ in slices]


def _marking_last(batches: Iterator[ScannedBatch]) -> Iterator[tuple[ScannedBatch, bool]]:
    """Each batch with whether it is the last one."""
    previous = next(batches, None)
    for batch in batches:
        if previous is not None:
            yield previous, False
        previous = batch
    if previous is not None:
        yield previous, True
