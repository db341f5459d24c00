"""Cutting a log back, as followers do when their leader says that the end of their log is wrong.

What was truncated must not come back after a crash, least of all mixed with what is appended next:
so the checkpointed recovery point is lowered first, then files are cut and removed, and all is made
durable before the log goes on. Truncation is rare; it may wait for the disk.

A batch that reaches beyond the cut goes as a whole, and the log then ends where that batch began:
its earlier records must be fetched again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.base.checks import check

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog
    from headwater.storage.segments.segment import LogSegment


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> bool:
    """Remove every record at or behind `offset`; returns whether there were any."""
    check(offset >= 0, "%s: cannot truncate to %d", log.partition, offset)
    if offset >= log.log_end_offset:
        # The end of the log is fine, but an epoch may have begun that wrote nothing.
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        return False
    log.settle()
    if log.segments[0].base_offset > offset:
        truncate_fully(log, offset, now_ms)
        return True
    with _failing_for_good(log):
        _truncate_within(log, offset, now_ms)
    return True


def truncate_fully(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Throw the whole log away and go on, empty, at `offset`."""
    log.settle()
    with _failing_for_good(log):
        log.keep_recovery_point(0)
        is_start_raised = offset > log.log_start_offset
        if is_start_raised:
            log.keep_log_start(offset)
        _drop_segments(log, list(log.segments), now_ms)
        if not is_start_raised:  # Only now, or an interruption would show deleted records again.
            log.keep_log_start(offset)
        log.segments.add(log.new_segment(offset, now_ms))
        log.restart_at(offset)
        log.durability.truncated(log.segments)
        log.leader_epochs.clear()
        log.producer_states.truncate_fully(log.files, log.directory, offset)
        log.flush()


def _truncate_within(log: PartitionLog, offset: int, now_ms: int) -> None:
    last = log.segments[log.segments.floor_number(offset)]
    spanning = last.find(offset)
    if spanning is not None and spanning.base_offset < offset:
        offset = max(spanning.base_offset, min(log.log_start_offset, offset))
    # To the segment's start, for its indexes are cut as well and not synced with the log.
    log.keep_recovery_point(min(log.recovery_point, last.base_offset))
    _drop_segments(log, [s for s in log.segments if s.base_offset > last.base_offset], now_ms)
    if spanning is not None:
        last.cut(spanning.position)
    is_start_lowered = offset < log.log_start_offset
    log.end_at(offset)
    log.leader_epochs.truncate_from_end(offset)
    log.durability.truncated(log.segments)
    log.reload_producer_states(now_ms)
    log.flush()
    if is_start_lowered:
        log.keep_log_start(offset)


@contextmanager
def _failing_for_good(log: PartitionLog) -> Iterator[None]:
    """A truncation that the disk stops half-way leaves a log that must not be written to."""
    try:
        yield
    except OSError as error:
        raise log.fail(error) from error


def _drop_segments(log: PartitionLog, segments: list[LogSegment], now_ms: int) -> None:
    """The newest first, each durably, so that a crash on the way leaves no hole in the log."""
    for segment in reversed(segments):
        log.segments.remove(segment)
        log.retired.retire([segment], now_ms + log.config.file_delete_delay_ms)
        log.files.sync_dir(log.directory)
