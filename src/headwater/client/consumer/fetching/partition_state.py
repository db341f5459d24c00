"""What a consumer knows of one partition that it reads: where it stands, and what is to be done.

The steps from being assigned to being read:

    INITIALIZING   nothing is known: what the group has committed is asked for
    RESETTING      there is no valid offset: one is asked for, as `reset` says
    VALIDATING     the leader has changed: whether it has the same log up to here is asked for
    FETCHING       there is an offset, and records may be fetched from there

`offset` is the position: that of the next record to be handed out. The polling thread moves it when
it hands out; the loop sets it only while nothing of the partition is buffered, or for the polling
thread. `fetch_offset`, where the next fetch goes on, belongs to the loop alone.
"""

from __future__ import annotations

from enum import Enum

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.positions.reset import OffsetReset
from headwater.client.fetch.isolation import IsolationLevel

NO_EPOCH = -1
NO_REPLICA = -1


class PositionStep(Enum):
    INITIALIZING = "initializing"
    RESETTING = "resetting"
    VALIDATING = "validating"
    FETCHING = "fetching"


class PartitionState:
    __slots__ = (
        "attempt_count",
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "is_under_way",
        "last_stable_offset",
        "leader_id",
        "log_start_offset",
        "not_before_s",
        "offset",
        "offset_epoch",
        "preferred_replica_id",
        "preferred_until_s",
        "reset",
        "step",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.step = PositionStep.INITIALIZING
        self.offset = -1
        #: The leader epoch of the last record before `offset`, where it is known.
        self.offset_epoch = NO_EPOCH
        self.fetch_offset = -1
        #: How to find an offset while the step is RESETTING; None as `auto.offset.reset` says.
        self.reset: OffsetReset | None = None
        self.is_paused = False
        #: Whether a question about the position is on its way.
        self.is_under_way = False
        #: After a failure nothing is asked before this time, which grows with the attempts.
        self.not_before_s = 0.0
        self.attempt_count = 0
        #: The leader as of when the position was last found good.
        self.leader_id = -1
        self.current_leader_epoch = NO_EPOCH
        #: A replica that the leader named for reading, and for how long.
        self.preferred_replica_id = NO_REPLICA
        self.preferred_until_s = 0.0
        # As of the last fetch; -1 before.
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1

    @property
    def has_position(self) -> bool:
        """Whether the position is known, be it still to be validated."""
        return self.step in (PositionStep.FETCHING, PositionStep.VALIDATING)

    @property
    def is_fetchable(self) -> bool:
        return self.step is PositionStep.FETCHING and not self.is_paused

    def set_position(self, offset: int, offset_epoch: int = NO_EPOCH) -> None:
        """Go on from here; with an epoch the leader is asked first whether it has the same log."""
        self.offset = self.fetch_offset = offset
        self.offset_epoch = offset_epoch
        self.reset = None
        self.step = PositionStep.FETCHING if offset_epoch == NO_EPOCH else PositionStep.VALIDATING
        self.settled()

    def follow_leader(self, leader_id: int, leader_epoch: int) -> None:
        """Take over who leads; what was read in another epoch is to be validated."""
        self.leader_id = leader_id
        # The metadata of a broker that is behind do not count.
        if leader_epoch <= self.current_leader_epoch:
            return
        was_known = self.current_leader_epoch != NO_EPOCH
        self.preferred_replica_id = NO_REPLICA  # It was the last leader's advice.
        self.current_leader_epoch = leader_epoch
        if was_known and self.step is PositionStep.FETCHING:
            self.step = PositionStep.VALIDATING
            self.settled()

    def request_reset(self, reset: OffsetReset | None = None) -> None:
        """Find an offset anew."""
        self.step = PositionStep.RESETTING
        self.reset = reset
        self.settled()

    def settled(self) -> None:
        """Something has come of what was asked: no pause, no attempts so far."""
        self.attempt_count = 0
        self.not_before_s = 0.0

    def end_offset(self, isolation_level: IsolationLevel) -> int:
        """Where reading ends for now, by the last fetch; -1 if it is not known."""
        if isolation_level is IsolationLevel.READ_COMMITTED:
            return self.last_stable_offset
        return self.high_watermark

    def committable(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.offset, "", self.offset_epoch)
