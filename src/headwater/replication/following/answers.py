"""What a leader's answer does to a partition that this broker follows. Sans-io.

Records are written, or the log is cut where histories part; the follower's offsets go along. Every
error ends here: one that can pass costs the partition a pause, one of this broker's own disk or
code takes the partition out until it has another role, and none of them touches other partitions.

    FENCED_LEADER_EPOCH     there was an election of which this broker has yet to hear: wait for it
    UNKNOWN_LEADER_EPOCH    the leader has yet to hear of its election: ask again soon
    OFFSET_OUT_OF_RANGE     the two logs do not overlap: see `offsets`
    others                  ask again soon, and say so in the log unless it is sure to pass
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.following.log import (
    append_fetched,
    start_over,
    truncate_to_leader,
)
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.partition import Condition, FollowedPartition
from headwater.replication.following.plan import FetchPlan
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog
from headwater.wire.messages.fetch import PartitionData

_logger = logging.getLogger(__name__)

#: What a follower hears while an election or a creation makes its way through the cluster.
_PASSING_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)


class FollowerAnswers:
    """Applies answers to the partitions of one plan."""

    def __init__(self, plan: FetchPlan) -> None:
        self._plan = plan
        #: Bytes of records that were written.
        self.bytes_in = 0
        #: Partitions whose logs do not overlap with the leader's, for whoever asks it for its own.
        self.out_of_range: list[FollowedPartition] = []
        #: Logs that were cut since somebody looked here last, and where they end.
        self.truncated: list[tuple[PartitionLog, int]] = []

    def take(
        self,
        followed: FollowedPartition,
        data: PartitionData,
        options: FetcherOptions,
        *,
        wall_ms: int,
        now_ms: float,
    ) -> int:
        """Do what the answer says about one partition; returns the bytes that were written."""
        if not self._plan.is_current(followed):
            return 0
        before = self.bytes_in
        self._guarded(
            followed, options, now_ms, lambda: self._take(followed, data, options, wall_ms, now_ms)
        )
        size_bytes = self.bytes_in - before
        if size_bytes and self._plan.throttles.following:
            self._plan.throttles.received(followed.partition, size_bytes)
        return size_bytes

    def start_over(
        self,
        followed: FollowedPartition,
        leader_start: int,
        leader_end: int,
        options: FetcherOptions,
        *,
        wall_ms: int,
        now_ms: float,
    ) -> None:
        """The leader has said where its log starts and ends."""
        if not self._plan.is_current(followed):
            return

        def act() -> None:
            log = followed.partition.log
            what = f"ends at {log.log_end_offset}"
            if not self._cut(followed, lambda: start_over(log, leader_start, leader_end, wall_ms)):
                self._plan.warn(followed, f"{what}, and nothing can be fetched from there")
                self._plan.pause(followed, now_ms, options.backoff_ms)

        self._guarded(followed, options, now_ms, act)

    def refused(
        self, followed: FollowedPartition, code: int, options: FetcherOptions, now_ms: float
    ) -> None:
        """The leader has answered with an error."""
        plan = self._plan
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            plan.halt(followed, Condition.AWAITS_ROLE)
            return
        if code not in _PASSING_ERRORS:
            name = ErrorCode.from_wire(code).name
            plan.warn(followed, f"is not replicated, broker {plan.leader} refuses it: {name}")
        plan.pause(followed, now_ms, options.backoff_ms)

    def _take(
        self,
        followed: FollowedPartition,
        data: PartitionData,
        options: FetcherOptions,
        wall_ms: int,
        now_ms: float,
    ) -> None:
        partition, plan, diverging = followed.partition, self._plan, data.diverging_epoch
        log = partition.log
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.out_of_range.append(followed)
        elif data.error_code:
            self.refused(followed, data.error_code, options, now_ms)
        elif diverging.epoch >= 0:
            if not self._cut(followed, lambda: truncate_to_leader(log, diverging, wall_ms)):
                plan.warn(
                    followed,
                    f"ends at {log.log_end_offset} in epoch {log.leader_epochs.latest_epoch}, and "
                    f"broker {plan.leader} ended epoch {diverging.epoch} at {diverging.end_offset}",
                )
                plan.pause(followed, now_ms, options.backoff_ms)
        else:
            records, size_bytes = data.records, 0
            if isinstance(records, bytes | bytearray | memoryview) and len(records) > 0:
                size_bytes = append_fetched(log, records, followed.leader_epoch, wall_ms)
                self.bytes_in += size_bytes
                if partition.write_failures.directories:
                    partition.write_failures.succeeded(log)
            partition.follower_appended(
                size_bytes,
                data.high_watermark,
                data.log_start_offset,
                # See `broker.fetch.answer`.
                data.snapshot_id.end_offset,
            )
            followed.leader_high_watermark = data.high_watermark
            followed.went_well()
            plan.moved(followed)

    def _cut(self, followed: FollowedPartition, cut: Callable[[], bool]) -> bool:
        """Truncate the log; whether that brought it nearer to the leader's."""
        partition = followed.partition
        log = partition.log
        end_offset, high_watermark = log.log_end_offset, log.high_watermark
        has_helped = cut()
        partition.follower_truncated()
        if log.log_end_offset != end_offset:
            self.truncated.append((log, log.log_end_offset))
            if log.log_end_offset < high_watermark:
                _logger.warning(
                    "%s is cut from %d to %d, below its high watermark %d: broker %d, which leads "
                    "it now, never had the rest",
                    partition.topic_partition,
                    end_offset,
                    log.log_end_offset,
                    high_watermark,
                    self._plan.leader,
                )
        if has_helped:
            self._plan.moved(followed)
        return has_helped

    def _guarded(
        self,
        followed: FollowedPartition,
        options: FetcherOptions,
        now_ms: float,
        act: Callable[[], None],
    ) -> None:
        plan, partition = self._plan, followed.partition
        try:
            act()
        except LogStorageError as error:
            partition.storage_failed(error)
            if partition.log.failure is None:
                # A disk that is full may have room again.
                plan.pause(followed, now_ms, options.backoff_ms)
            else:
                plan.halt(followed, Condition.FAILED)
        except KafkaError as error:
            # What came is damaged, or does not fit: perhaps that is different the next time.
            plan.warn(followed, f"cannot take what broker {plan.leader} sent: {error}")
            plan.pause(followed, now_ms, options.backoff_ms)
        except Exception:
            _logger.exception("%s is not replicated any more", partition.topic_partition)
            plan.halt(followed, Condition.FAILED)
