"""Starting a new segment.

A new segment starts where the records of the old one end, even if the log's end is further on:
segments follow each other without a gap, and recovery takes a gap for a loss. Only a leader's batch
that lies too far behind a compacted stretch leaves one, and then the recovery point on disk is put
behind it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.base.checks import check
from headwater.storage.errors import LogStorageError
from headwater.storage.segments.segment_files import remove_segment_files

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog
    from headwater.storage.segments.segment import LogSegment


def roll_log(log: PartitionLog, now_ms: int, base_offset: int | None = None) -> LogSegment:
    """Seal the active segment and start another; an empty one at the same place is kept."""
    active = log.segments.active
    new_base_offset = active.next_offset if base_offset is None else base_offset
    if active.base_offset == new_base_offset:
        check(active.size_bytes == 0, "%s: a full segment is not at its end", log.partition)
        return active
    try:
        active.seal()
        log.producer_states.take_snapshot(log.files, log.directory, durable=False)
        segment = log.new_segment(new_base_offset, now_ms)
    except OSError as error:
        _remove_beginnings(log, new_base_offset, error)
        raise LogStorageError(
            f"{log.partition} could not start a new segment: {error.strerror}."
        ) from error
    log.segments.add(segment)
    log.durability.segment_sealed(active)
    if new_base_offset > active.next_offset:
        log.flush()
        log.durability.skip_to(new_base_offset)
        log.keep_recovery_point(new_base_offset)
    return segment


def _remove_beginnings(log: PartitionLog, base_offset: int, error: OSError) -> None:
    """A segment was begun and failed: its empty log would hide the records to come."""
    try:
        remove_segment_files(log.files, log.directory, base_offset)
        log.files.sync_dir(log.directory)
    except OSError as second:
        raise log.fail(second) from error
