"""Cutting a log back, as followers do when their leader says that the end of their log is wrong.

What was truncated must not come back after a crash, least of all mixed with what is appended next:
so the checkpointed recovery point is lowered first, then files are cut and removed, and all is made
durable before the log goes on. Truncation is rare; it may wait for the disk.

A batch that reaches beyond the cut goes as a whole, and the log then ends where that batch began:
its earlier records must be fetched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.base.checks import check

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog
    from headwater.storage.segment import LogSegment


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> bool:
    """Remove every record at or behind `offset`; returns whether there were any."""
    check(offset >= 0, "%s: cannot truncate to %d", log.partition, offset)
    if offset >= log.log_end_offset:
        # The end of the log is fine, but an epoch may have begun that wrote nothing.
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        return False
    if log.segments[0].base_offset > offset:
        truncate_fully(log, offset, now_ms)
        return True
    last = log.segments[log.segments.floor_number(offset)]
    spanning = last.find(offset)
    if spanning is not None and spanning.base_offset < offset:
        offset = max(spanning.base_offset, min(log.log_start_offset, offset))
    log.keep_recovery_point(min(log.recovery_point, offset))
    _drop_segments(log, [s for s in log.segments if s.base_offset > last.base_offset], now_ms)
    last.unseal()
    if spanning is not None:
        last.cut(spanning.position)
    _settle(log, offset)
    log.reload_producer_states(now_ms)
    log.flush()
    return True


def truncate_fully(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Throw the whole log away and go on, empty, at `offset`."""
    log.keep_recovery_point(0)
    _drop_segments(log, list(log.segments), now_ms)
    log.segments.add(log.new_segment(offset, now_ms))
    log.log_start_offset = offset
    _settle(log, offset)
    log.leader_epochs.clear()
    log.producer_states.truncate_fully(log.files, log.directory, offset)
    log.flush()


def _drop_segments(log: PartitionLog, segments: list[LogSegment], now_ms: int) -> None:
    """The newest first, each durably, so that a crash on the way leaves no hole in the log."""
    for segment in reversed(segments):
        log.segments.remove(segment)
        log.retired.retire([segment], now_ms + log.config.file_delete_delay_ms)
        log.files.sync_dir(log.directory)


def _settle(log: PartitionLog, offset: int) -> None:
    """Bring the log's offsets in line with its new end."""
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.high_watermark = min(log.high_watermark, offset)
    log.leader_epochs.truncate_from_end(offset)
    log.durability.truncated(offset, log.segments)
