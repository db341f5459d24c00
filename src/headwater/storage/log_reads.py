"""Reading a log: from an offset or a timestamp to a place in one of its segments.

A read gives a region of a file, not bytes: whoever sends it can do so without copying it.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.storage.disk.files import FileRegion
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList
from headwater.storage.visible_reads import JoinedRegion, visible_pieces
from headwater.wire.records import NO_TIMESTAMP


class LogRead(NamedTuple):
    """From the batch that holds the offset asked for; another than this may be cut short."""

    region: FileRegion | JoinedRegion | None
    limit_offset: int
    segment: LogSegment | None = None
    #: Whether there is nothing in it but the header of a batch that compaction has emptied.
    is_bare: bool = False
    #: Whether it ends in front of hidden batches though there is more behind them that would fit:
    #: what is there need not wait for more.
    has_more: bool = False

    @property
    def counted_bytes(self) -> int:
        """What counts as something to read: a bare header is sent, but nobody waits for it."""
        return 0 if self.is_bare else self.size

    @property
    def size(self) -> int:
        return 0 if self.region is None else self.region.size

    @property
    def upper_offset(self) -> int:
        """No record of the region lies at or behind this; readers of committed data ask."""
        if self.region is None or self.segment is None:
            return self.limit_offset
        region = self.region
        end = region.end if isinstance(region, JoinedRegion) else region.position + region.size
        behind = self.segment.offset_index.offset_behind(end)
        return min(self.limit_offset, self.segment.next_offset if behind is None else behind)


def read_segments(
    segments: SegmentList, offset: int, max_bytes: int, upper_offset: int, min_one_batch: bool
) -> LogRead:
    """From the batch that holds `offset`, and below `upper_offset`: see `PartitionLog.read`."""
    if offset >= upper_offset:
        return LogRead(None, upper_offset)
    for number in range(max(segments.floor_number(offset), 0), len(segments)):
        segment = segments[number]
        found = segment.find(offset)
        if found is None:
            continue  # All that this segment held from here on was compacted away.
        end = segment.size_bytes
        if upper_offset < segment.next_offset:
            limit = segment.find(upper_offset, found.position)
            end = segment.size_bytes if limit is None else limit.position
        size = min(end - found.position, max(max_bytes, found.size if min_one_batch else 0))
        if size < found.size:
            break  # A piece of one batch is of no use to anybody.
        return LogRead(segment.region(found.position, size), upper_offset, segment)
    return LogRead(None, upper_offset)


def read_visible_segments(
    segments: SegmentList,
    offset: int,
    max_bytes: int,
    upper_offset: int,
    min_one_batch: bool,
    *,
    joins: bool = True,
) -> LogRead:
    """The same without hidden batches: see `PartitionLog.read_records`.

    In front of `upper_offset`, which must be a `visible_end`, there is always one that can be seen.
    """
    number = max(segments.floor_number(offset), 0)
    while number < len(segments) and offset < upper_offset:
        segment = segments[number]
        found = segment.find(offset)
        if found is not None and segment.hidden is not None:
            stretch = next(segment.hidden.behind(found.position), None)
            if stretch is not None and stretch.position <= found.position:
                offset = stretch.next_offset
                if offset >= upper_offset:
                    break
                found = None
                if stretch.end < segment.size_bytes:
                    found = segment.find(offset, stretch.end)
        if found is None:
            number += 1
            continue
        end = segment.size_bytes
        if upper_offset < segment.next_offset:
            limit = segment.find(upper_offset, found.position)
            end = segment.size_bytes if limit is None else limit.position
        size_max = max(max_bytes, found.size if min_one_batch else 0)
        if end <= found.position or size_max < found.size:
            break
        region, has_more = visible_pieces(segment, found.position, end, size_max, joins=joins)
        return LogRead(region, upper_offset, segment, has_more=has_more)
    return LogRead(None, upper_offset)


def read_record_segments(
    segments: SegmentList,
    offset: int,
    max_bytes: int,
    upper_offset: int,
    min_one_batch: bool,
    *,
    has_hidden: bool,
) -> LogRead:
    """The same without batches that compaction has emptied: see `PartitionLog.read_records`."""
    bare: LogRead | None = None
    while True:
        if has_hidden:
            read = read_visible_segments(
                segments, offset, max_bytes, upper_offset, min_one_batch, joins=False
            )
        else:
            read = read_segments(segments, offset, max_bytes, upper_offset, min_one_batch)
        segment = read.segment
        if read.region is None or segment is None:
            return read if bare is None else bare
        position, end = read.region.position, read.region.position + read.region.size
        known_end, empty = segment.empty_batches.look(position, end)
        stop = known_end if empty is None else empty.position
        if stop == end:
            return read
        if empty is None or position < stop:
            return read._replace(region=segment.region(position, stop - position))
        last = segment.region(empty.last_position, empty.end - empty.last_position)
        bare = LogRead(last, upper_offset, segment, is_bare=True)
        offset = empty.next_offset


def find_aborted(segments: SegmentList, offset: int, upper_offset: int) -> list[AbortedTransaction]:
    """The aborted transactions that overlap [offset, upper_offset)."""
    aborted: list[AbortedTransaction] = []
    for segment in segments.from_offset(offset):
        found, is_complete = segment.transaction_index.collect_aborted(offset, upper_offset)
        aborted += found
        if is_complete:
            break
    return aborted


def find_timestamp(
    segments: SegmentList, timestamp: int, log_start_offset: int, max_decompressed_bytes: int
) -> TimestampOffset | None:
    """The first record at or behind `log_start_offset` that is not older than `timestamp`.

    A batch that would have to be looked into, and decompresses to more than the bound, raises
    `DecompressedTooLargeError`.
    """
    for segment in segments:
        if segment.latest.timestamp >= timestamp:
            found = segment.find_timestamp(timestamp, log_start_offset, max_decompressed_bytes)
            if found is not None:
                return found
    return None


def find_max_timestamp(
    segments: SegmentList, log_start_offset: int, upper_offset: int, max_decompressed_bytes: int
) -> TimestampOffset | None:
    """The first record with the largest timestamp in [log_start_offset, upper_offset)."""
    # Of the first segment a part may have been deleted, the largest timestamp with it.
    latest = max(
        (
            segment.largest_timestamp_between(
                log_start_offset, upper_offset, max_decompressed_bytes
            )
            for segment in segments
            if segment.base_offset < upper_offset
        ),
        default=NO_TIMESTAMP,
    )
    if latest < 0:
        return None
    return find_timestamp(segments, latest, log_start_offset, max_decompressed_bytes)
