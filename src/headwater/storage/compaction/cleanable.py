"""How much of a log is dirty, and which log is to be compacted next.

    log start ... first dirty offset ... first uncleanable offset ... log end
        clean: compacted before     dirty                    not yet to be touched

The first dirty offset comes from the cleaner's checkpoint. Cleaning works with whole segments and
stops in front of the first one that holds something which cannot be cleaned:

- the active segment;
- the last stable offset, for what becomes of an open transaction is not known;
- the recovery point. Records that a power loss could still take must not replace durable ones: of a
  key whose old value was compacted away and whose new value was lost, nothing would be left;
- segments with a record younger than `min.compaction.lag.ms`.

The dirty ratio is the dirty part's share of clean and dirty. A log is compacted when it exceeds
`min.cleanable.dirty.ratio`, or when a dirty record waits for longer than `max.compaction.lag.ms`;
of several such logs the dirtiest comes first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from headwater.storage.log_config import LONG_MAX
from headwater.storage.partition_log import PartitionLog
from headwater.storage.segments.batch_scan import read_entry_header
from headwater.storage.segments.segment import LogSegment
from headwater.wire.records import HEADER_SIZE

_logger = logging.getLogger(__name__)


class DirtySection(NamedTuple):
    """What there is to compact in a log."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    #: For how long the oldest dirty record is overdue, by `max.compaction.lag.ms`.
    overdue_ms: int

    @property
    def dirty_ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_cleanable(self) -> bool:
        if self.first_dirty_offset >= self.first_uncleanable_offset or not self.dirty_bytes:
            return False
        is_dirty = self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio
        return is_dirty or self.overdue_ms > 0


def valid_dirty_offset(log: PartitionLog, checkpoint: int | None) -> int:
    """Where the dirty part begins: at the checkpoint, or at the start if that cannot be."""
    if checkpoint is None:
        return log.log_start_offset
    if checkpoint > log.log_end_offset:
        _logger.warning(
            "%s was compacted up to %d but ends at %d: all of it counts as dirty",
            log.partition,
            checkpoint,
            log.log_end_offset,
        )
        return log.log_start_offset
    if checkpoint < log.log_start_offset and not log.config.deletes_by_retention:
        _logger.info(
            "%s was compacted up to %d but starts at %d: it is dirty from there on",
            log.partition,
            checkpoint,
            log.log_start_offset,
        )
    return max(checkpoint, log.log_start_offset)


def dirty_section(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> DirtySection:
    """What can be compacted of a log, given a valid first dirty offset."""
    uncleanable = _first_uncleanable_offset(log, first_dirty_offset, now_ms)
    clean_bytes = dirty_bytes = 0
    oldest_timestamp: int | None = None
    for segment in log.segments.sealed:
        if segment.base_offset >= uncleanable:
            break
        if segment.next_offset <= first_dirty_offset:
            clean_bytes += segment.size_bytes
        else:
            dirty_bytes += segment.size_bytes
            oldest_timestamp = _earlier(oldest_timestamp, log, segment)
    overdue_ms = 0
    if oldest_timestamp is not None:
        overdue_ms = max(0, now_ms - log.config.max_compaction_lag_ms - oldest_timestamp)
    return DirtySection(log, first_dirty_offset, uncleanable, clean_bytes, dirty_bytes, overdue_ms)


def filthiest(sections: Iterable[DirtySection]) -> DirtySection | None:
    """The one to compact next, if any is worth it."""
    return max(
        (each for each in sections if each.is_cleanable),
        key=lambda each: each.dirty_ratio,
        default=None,
    )


def _first_uncleanable_offset(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> int:
    segments = log.segments
    limit = min(segments.active.base_offset, log.last_stable_offset, log.recovery_point)
    # A segment is cleaned as a whole or not at all.
    limit = segments[max(segments.floor_number(limit), 0)].base_offset
    if log.config.min_compaction_lag_ms > 0:
        young_from_ms = now_ms - log.config.min_compaction_lag_ms
        for segment in segments.from_offset(first_dirty_offset):
            if segment.base_offset >= limit:
                break
            if segment.largest_timestamp > young_from_ms:
                return max(segment.base_offset, first_dirty_offset)
    return max(limit, first_dirty_offset)


def _earlier(oldest: int | None, log: PartitionLog, segment: LogSegment) -> int | None:
    """The earlier of `oldest` and the time of a segment's first batch, which stands for its age."""
    if log.config.max_compaction_lag_ms == LONG_MAX or segment.size_bytes == 0:
        return oldest
    header = segment.log.read_at(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0")
    timestamp = read_entry_header(header).max_timestamp
    if timestamp <= 0 or (oldest is not None and oldest <= timestamp):
        return oldest
    return timestamp
