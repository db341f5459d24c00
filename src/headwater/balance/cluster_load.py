"""What a planner is told of a cluster: its brokers, its partitions, and what each of them costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from headwater.base.ids import TopicPartition


class Resource(Enum):
    """What a broker gives to the replicas that lie on it; the value is how people call it."""

    REPLICAS = "replicas"
    DISK = "disk"
    INBOUND = "traffic in"
    OUTBOUND = "traffic out"
    LEADERS = "leaders"


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """A broker that is registered, or that some partition still names."""

    broker_id: int
    rack: str | None = None
    is_alive: bool = True
    #: No new replica may be put on it.
    is_cordoned: bool = False
    #: What it has room for; a resource that is missing has no known limit.
    capacity: dict[Resource, int] = field(default_factory=dict)

    @property
    def takes_replicas(self) -> bool:
        return self.is_alive and not self.is_cordoned


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """Where a partition's replicas lie, the preferred leader first, and what one of them costs."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int = 0
    #: What producers write, in bytes a second; every replica takes that much in.
    inbound_rate: int = 0
    #: What consumers read from the leader.
    outbound_rate: int = 0

    def cost(self, resource: Resource, *, is_leader: bool) -> int:
        """What a replica of it takes of a broker's resource."""
        match resource:
            case Resource.REPLICAS:
                return 1
            case Resource.DISK:
                return self.size_bytes
            case Resource.INBOUND:
                return self.inbound_rate
            case Resource.OUTBOUND:
                # The leader also sends everything to each of its followers.
                copies = self.inbound_rate * (len(self.replicas) - 1)
                return self.outbound_rate + copies if is_leader else 0
            case Resource.LEADERS:
                return int(is_leader)


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """All of it, in an order that does not depend on how it was collected."""

    brokers: tuple[BrokerLoad, ...]
    partitions: tuple[PartitionLoad, ...]

    @classmethod
    def of(cls, brokers: Iterable[BrokerLoad], partitions: Iterable[PartitionLoad]) -> ClusterLoad:
        """Brokers that only an assignment names are taken for dead: nobody registered them."""
        known = {broker.broker_id: broker for broker in brokers}
        ordered = sorted(partitions, key=lambda each: each.topic_partition)
        for partition in ordered:
            for broker_id in partition.replicas:
                known.setdefault(broker_id, BrokerLoad(broker_id, is_alive=False))
        return cls(tuple(known[broker_id] for broker_id in sorted(known)), tuple(ordered))
