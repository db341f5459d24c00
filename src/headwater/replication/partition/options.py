"""What a broker's settings say about replicating a partition and acknowledging appends to it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

ACKS_ALL = -1


class AcksAllFlush(Enum):
    """When acks=all waits for this broker's disk (`acks.all.flush`)."""

    #: When the leader is the only one in sync: then no other broker has the record.
    AUTO = "auto"
    #: Always; the fsync runs while the followers replicate.
    LEADER = "leader"
    #: Never: as Kafka does by default.
    OFF = "off"


class ThrottledReplicas(NamedTuple):
    """Which partitions of a topic are throttled on this broker."""

    is_all: bool = False
    numbers: frozenset[int] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str], broker_id: int) -> ThrottledReplicas:
        """From `*`, or partition:broker each; what is neither was refused when it was set."""
        pairs = [each.partition(":") for each in texts]
        return cls(
            is_all=any(first == "*" for first, _, _ in pairs),
            numbers=frozenset(int(first) for first, _, second in pairs if second == str(broker_id)),
        )

    def has(self, number: int) -> bool:
        return self.is_all or number in self.numbers


NOT_THROTTLED: Final = ThrottledReplicas()


class PartitionOptions(NamedTuple):
    """The settings of a topic that its partitions follow; a change brings new ones."""

    min_insync_replicas: int
    acks_all_flush: AcksAllFlush
    #: How long a follower may lag behind and still count as in sync.
    replica_lag_time_max_ms: int = 30_000
    #: Of which partitions this broker sends and fetches no more than it may, as Kafka's settings
    #: say it.
    throttled_leading: ThrottledReplicas = NOT_THROTTLED
    throttled_following: ThrottledReplicas = NOT_THROTTLED
