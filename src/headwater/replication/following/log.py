"""What a follower does to its log: it takes over what the leader has, and cuts off what it has not.

A follower's log is a copy of its leader's: fetched batches are written as they are.

Where histories part, leader epochs tell how much of the log is worth keeping. The leader answers a
fetch with the last epoch that both may have in common and the offset at which it ended on the
leader. If this log has that epoch, both have the same up to the smaller of its two ends. If not,
the log is cut at the end of the epoch before, and the next fetch asks again from there. The high
watermark plays no part in it: a follower learns of it a fetch late, so a cut there would lose what
others rely on, or keep what nobody else has.

All of this runs on the owner of the log, the event loop. A truncation waits for the disk.
"""

from __future__ import annotations

from headwater.storage.leader_epochs import UNDEFINED_EPOCH
from headwater.storage.partition_log import PartitionLog
from headwater.storage.truncation import truncate_fully, truncate_to
from headwater.wire.messages.fetch import EpochEndOffset
from headwater.wire.records import HEADER_SIZE, Buffer, read_batch_header


def begin_following(log: PartitionLog, now_ms: int) -> None:
    """The log becomes a follower's, perhaps after it was a leader's; raises if it has failed."""
    if log.failure is not None:
        # One that only fetches looks caught up until there is something to write: it would be
        # taken back into the ISR that it has just left, and could be elected.
        raise log.failure
    # An epoch in which this broker led and wrote nothing is no part of the log's history.
    log.leader_epochs.truncate_from_end(log.log_end_offset, flush=False)
    if log.leader_epochs.latest_epoch is None and log.log_end_offset > log.high_watermark:
        # Its records are older than leader epochs: there is nothing better to go by.
        truncate_to(log, log.high_watermark, now_ms)


def append_fetched(log: PartitionLog, records: Buffer, leader_epoch: int, now_ms: int) -> int:
    """Write what a fetch in `leader_epoch` brought; returns how many bytes of it."""
    start = log.log_start_offset
    if start == log.log_end_offset and len(records) >= HEADER_SIZE:
        first = read_batch_header(records)
        if first.base_offset < start <= first.last_offset:
            # The leader's log starts within this batch: an empty one has to hold all of it.
            truncate_fully(log, first.base_offset, now_ms)
    size_bytes = log.append_as_follower(records, leader_epoch=leader_epoch, now_ms=now_ms)
    if size_bytes > 0:
        log.raise_log_start(start)
    return size_bytes


def truncate_to_leader(log: PartitionLog, diverging: EpochEndOffset, now_ms: int) -> bool:
    """Cut off what the leader does not have, as far as one answer tells; whether that helped."""
    before = (log.log_end_offset, log.leader_epochs.latest_epoch)
    truncate_to(log, common_end(log, diverging), now_ms)
    return (log.log_end_offset, log.leader_epochs.latest_epoch) != before


def common_end(log: PartitionLog, diverging: EpochEndOffset) -> int:
    """Up to where this log and the leader's can be the same."""
    end_offset = log.log_end_offset
    own = log.leader_epochs.end_offset_for(diverging.epoch, end_offset)
    if own.epoch == UNDEFINED_EPOCH:
        return min(diverging.end_offset, end_offset)
    if own.epoch == diverging.epoch:
        return min(diverging.end_offset, own.end_offset, end_offset)
    # This log skips that epoch, so it shares at most the ones before it.
    return min(own.end_offset, end_offset)


def start_over(log: PartitionLog, leader_start: int, leader_end: int, now_ms: int) -> bool:
    """The leader does not have this log's end offset: go to where it has one. Whether that helped.

    Its log may be shorter, after an unclean election, or may start behind this one's end, after
    this broker was away for longer than records are kept.
    """
    end_offset = log.log_end_offset
    if leader_end < end_offset:
        truncate_to(log, leader_end, now_ms)
    elif leader_start > end_offset:
        truncate_fully(log, leader_start, now_ms)
    return log.log_end_offset != end_offset
