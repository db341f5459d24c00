"""How far replicas are from their leaders, and whether they get nearer: seen by sizes on disk.

They are looked at twice, a moment apart. All of it is asked as any client asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import LogDirectory


class ReplicaSizes(NamedTuple):
    """How large replicas are on disk, by broker, at one moment."""

    by_broker: Mapping[int, Mapping[TopicPartition, int]]

    @classmethod
    def of_directories(cls, outcomes: Mapping[int, Sequence[LogDirectory] | KafkaError]) -> Self:
        return cls(
            {
                broker_id: {
                    partition: replica.size_bytes
                    for directory in directories
                    for partition, replica in directory.replicas.items()
                    if not replica.is_future
                }
                for broker_id, directories in outcomes.items()
                if not isinstance(directories, KafkaError)
            }
        )

    def size(self, broker_id: int, partition: TopicPartition) -> int:
        return self.by_broker.get(broker_id, {}).get(partition, 0)


class LedPartition(NamedTuple):
    """A partition, and from whom it is copied."""

    partition: TopicPartition
    leader_id: int


class Progress(NamedTuple):
    """Of a broker's replicas of some partitions, in bytes."""

    #: What they lacked at the first look, and at the second.
    gap: int
    left: int
    grown: int

    @classmethod
    def of(
        cls,
        broker_id: int,
        copied: Sequence[LedPartition],
        before: ReplicaSizes,
        after: ReplicaSizes,
    ) -> Progress | None:
        """None if the broker does not tell."""
        if broker_id not in before.by_broker or broker_id not in after.by_broker:
            return None
        gap, left = (
            sum(
                max(sizes.size(leader_id, each) - sizes.size(broker_id, each), 0)
                for each, leader_id in copied
            )
            for sizes in (before, after)
        )
        grown = sum(
            after.size(broker_id, each) - before.size(broker_id, each) for each, _ in copied
        )
        return cls(gap, left, grown)

    def seconds_left(self, seconds: float) -> float | None:
        """How long it takes at the pace of so many seconds between the looks; None: for ever."""
        return self.left * seconds / (self.gap - self.left) if self.left < self.gap else None
