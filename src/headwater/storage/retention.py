"""Which segments a log may drop: the three retention rules of the notes.

A segment goes when its youngest record is older than `retention.ms`, when the log is larger than
`retention.bytes` even without it, or when all of it lies in front of the log start offset. Rules
look from the oldest segment on and stop at the first that stays: a log never gets a hole. Nothing
at or behind the high watermark goes, for a follower may still need it; and neither age nor size
takes a segment in which a message waits for its delivery, whose bytes count for nothing here.

When even the active segment goes, the log rolls first, so that there is an empty segment to take
new records. An empty active segment stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headwater.storage.errors import OffsetOutOfRangeError
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.snapshot import remove_snapshots_below
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList
from headwater.storage.waiting_messages import WaitingMessages

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog


class Expired(NamedTuple):
    segment: LogSegment
    reason: str


def expired_segments(
    segments: SegmentList,
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
    waiting: WaitingMessages | None = None,
) -> list[Expired]:
    """The segments to drop, oldest first; the active one may be among them."""
    expired: dict[int, Expired] = {}
    rules = [_in_front_of(segments, log_start_offset)]
    if config.deletes_by_retention:
        waiting_bytes = 0 if waiting is None else waiting.bytes
        rules += [
            _unless_held(rule, waiting, high_watermark)
            for rule in (
                _older_than(config.retention_ms, now_ms),
                _beyond_size(segments, config, waiting_bytes),
            )
        ]
    for rule in rules:
        for segment in segments:
            if segment is segments.active and segment.size_bytes == 0:
                break
            if _end_offset(segments, segment) > high_watermark:
                break
            reason = rule(segment)
            if reason is None:
                break
            expired.setdefault(segment.base_offset, Expired(segment, reason))
    return [expired[base_offset] for base_offset in sorted(expired)]


Rule = Callable[[LogSegment], str | None]


def _end_offset(segments: SegmentList, segment: LogSegment) -> int:
    following = segments.next_base_offset(segment)
    return segment.next_offset if following is None else following


def _in_front_of(segments: SegmentList, log_start_offset: int) -> Rule:
    def rule(segment: LogSegment) -> str | None:
        following = segments.next_base_offset(segment)
        if following is None or following > log_start_offset:
            return None
        return f"it lies in front of the log start offset {log_start_offset}"

    return rule


def _older_than(retention_ms: int, now_ms: int) -> Rule:
    def rule(segment: LogSegment) -> str | None:
        if retention_ms < 0:
            return None
        age_ms = now_ms - segment.largest_timestamp
        if age_ms <= retention_ms:
            return None
        return f"its youngest record is {age_ms} ms old, more than retention.ms={retention_ms}"

    return rule


def _unless_held(rule: Rule, waiting: WaitingMessages | None, high_watermark: int) -> Rule:
    """What waits for its delivery lies in its segment, and nowhere else."""

    def held_rule(segment: LogSegment) -> str | None:
        if waiting is None:
            is_held = segment.hidden is not None  # Nobody has said what of it waits.
        else:
            is_held = waiting.holds(segment.base_offset, high_watermark)
        return None if is_held else rule(segment)

    return held_rule


def _beyond_size(segments: SegmentList, config: LogConfig, waiting_bytes: int) -> Rule:
    excess_bytes = segments.size_bytes - waiting_bytes - config.retention_bytes

    def rule(segment: LogSegment) -> str | None:
        nonlocal excess_bytes
        if config.retention_bytes < 0 or excess_bytes < segment.size_bytes:
            return None
        excess_bytes -= segment.size_bytes
        return f"the log exceeds retention.bytes={config.retention_bytes}"

    return rule


def apply_retention(log: PartitionLog, now_ms: int) -> list[Expired]:
    """Drop what the rules allow to drop; the files follow `file.delete.delay.ms` later."""
    expired = expired_segments(
        log.segments,
        log.config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
        waiting=log.waiting,
    )
    if not expired:
        return []
    if log.unfinished is not None:
        log.settle()
        return apply_retention(log, now_ms)
    if len(expired) == len(log.segments):
        log.roll(now_ms)
    if log.recovery_point < expired[-1].segment.next_offset:
        # What is known of producers must outlive their records: the snapshot becomes durable.
        log.flush()
    segments = [each.segment for each in expired]
    for segment in segments:
        log.segments.remove(segment)
        if log.waiting is not None:
            log.waiting.drop(segment.base_offset)
    first_base_offset = log.segments[0].base_offset
    log.raise_log_start(first_base_offset)
    # Once the new start is durable it does not matter which of the old names survive a crash.
    log.keep_log_start(log.log_start_offset)
    # Only now: a log that a crash sets back to its old start still needs the epochs from there on.
    log.leader_epochs.truncate_from_start(log.log_start_offset, flush=False)
    remove_snapshots_below(log.files, log.directory, first_base_offset)
    log.durability.replaced(segments)
    log.retired.retire(segments, now_ms + log.config.file_delete_delay_ms)
    log.durability.directory_changed()
    return expired


def delete_records_before(log: PartitionLog, offset: int) -> int:
    """Hide all records in front of `offset`, at most up to the high watermark; returns the start.

    Whole segments are dropped by the next round of retention.
    """
    if offset > log.high_watermark:
        raise OffsetOutOfRangeError(
            f"{log.partition}: records before {offset} cannot be deleted, "
            f"for the high watermark is {log.high_watermark}."
        )
    log.raise_log_start(offset)
    return log.log_start_offset
