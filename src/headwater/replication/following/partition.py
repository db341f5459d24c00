"""One partition that this broker follows: what its leader is asked for, and how that goes.

A partition is *fetchable*, or it *pauses* after an error, the longer the more often that happens,
or until the throttle that *holds it back* has room, or it is *halted*. Halted is one whose leader
has heard of an election that this broker has not (the next role tells more), and one that this
broker cannot write to any more.
"""

from __future__ import annotations

import uuid
from enum import Enum, auto
from typing import Final, NamedTuple

from headwater.replication.partition.partition import Partition

NO_EPOCH: Final = -1
#: The first pause after an error is this part of the longest: most errors pass within
#: milliseconds, as when the leader hears of its election later than its followers.
_FIRST_PAUSE_PART: Final = 16

#: A topic's id and a partition's number: what a fetch names a partition by.
FollowedKey = tuple[uuid.UUID, int]


def pause_ms(failure_count: int, longest_ms: int) -> float:
    """How long to wait after so many failures in a row."""
    factor = 1 << min(failure_count - 1, 16)
    return min(longest_ms, longest_ms / _FIRST_PAUSE_PART * factor)


class Position(NamedTuple):
    """What a fetch request says of a partition; a change of any field is worth telling."""

    offset: int
    #: In which epoch the follower takes the leader to be.
    leader_epoch: int
    #: The epoch of the follower's last record; by it the leader sees where histories part.
    last_fetched_epoch: int
    log_start_offset: int


class Condition(Enum):
    FETCHABLE = auto()
    PAUSED = auto()
    #: A pause, too, until a throttle has room.
    HELD_BACK = auto()
    #: Until the next role.
    AWAITS_ROLE = auto()
    FAILED = auto()


class FollowedPartition:
    """Its owner is a `FetchPlan`; a new role makes a new one."""

    __slots__ = (
        "condition",
        "failure_count",
        "has_warned",
        "key",
        "leader_epoch",
        "leader_high_watermark",
        "partition",
        "resumes_ms",
        "told",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: FollowedKey = (partition.topic_id, partition.topic_partition.partition)
        #: The epoch in which the leader is asked; answers to older questions do not count.
        self.leader_epoch = partition.leader_epoch
        #: Unknown until the leader has answered.
        self.leader_high_watermark = -1
        #: What the leader was told last, in the request under way or the one before; None if the
        #: leader's session does not have this partition.
        self.told: Position | None = None
        self.condition = Condition.FETCHABLE
        self.resumes_ms = 0.0
        self.failure_count = 0
        #: The log has one line for a partition that goes on failing.
        self.has_warned = False

    def position(self) -> Position:
        log = self.partition.log
        latest_epoch = log.leader_epochs.latest_epoch
        return Position(
            log.log_end_offset,
            self.leader_epoch,
            NO_EPOCH if latest_epoch is None else latest_epoch,
            log.log_start_offset,
        )

    @property
    def is_current(self) -> bool:
        """Whether an answer that comes now is one to what would be asked now."""
        told = self.told
        return (
            told is not None
            and self.condition is Condition.FETCHABLE
            and told.leader_epoch == self.leader_epoch
            and told.offset == self.partition.log.log_end_offset
        )

    @property
    def lag(self) -> int:
        """How many offsets the replica is known to be behind."""
        return max(0, self.leader_high_watermark - self.partition.log.log_end_offset)

    @property
    def has_committed(self) -> bool:
        """Whether the replica is known to have all that the leader has committed."""
        return 0 <= self.leader_high_watermark <= self.partition.log.log_end_offset

    def went_well(self) -> None:
        self.failure_count = 0
        self.has_warned = False

    def hold_back(self, until_ms: float) -> None:
        self.condition = Condition.HELD_BACK
        self.resumes_ms = until_ms

    def pause(self, now_ms: float, longest_ms: int) -> None:
        self.failure_count += 1
        self.condition = Condition.PAUSED
        self.resumes_ms = now_ms + pause_ms(self.failure_count, longest_ms)
