"""Which partitions of a cluster lack something: a leader, replicas in sync, their preferred leader.

Counted from what Metadata tells, so it works against every Kafka. A preferred leader is the first
of a partition's replicas. Metadata does not tell replicas that are being added from others, and a
partition lacks nothing for not having them yet: so who counts asks for `without_added` topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.cluster.told import told
from headwater.client.admin import (
    ConfigOperations,
    ConfigResource,
    PartitionReassignment,
    ReassignmentOperations,
    ResourceType,
    TopicOperations,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo

MIN_ISR: Final = "min.insync.replicas"

#: Partitions on their way to other brokers.
Moves: TypeAlias = Mapping[TopicPartition, PartitionReassignment]


class PartitionHealth(NamedTuple):
    """How partitions are, by what is wrong with them."""

    partition_count: int
    #: Without a leader, so out of use.
    offline: list[TopicPartition]
    #: With a leader, and with replicas that are not in sync.
    under_replicated: list[TopicPartition]
    #: Led, but not by the first of their replicas.
    not_preferred: list[TopicPartition]

    @classmethod
    def of(cls, topics: Collection[TopicInfo]) -> PartitionHealth:
        offline, behind, elsewhere, count = [], [], [], 0
        for topic in topics:
            for each in topic.partitions:
                count += 1
                key = TopicPartition(topic.name, each.partition)
                if not each.has_leader:
                    offline.append(key)
                    continue
                if is_under_replicated(each):
                    behind.append(key)
                if each.leader_id != each.replicas[0]:
                    elsewhere.append(key)
        return cls(count, offline, behind, elsewhere)

    @property
    def is_whole(self) -> bool:
        """Whether every partition has a leader and all replicas in sync."""
        return not self.offline and not self.under_replicated


def without_added(topics: Collection[TopicInfo], moves: Moves) -> list[TopicInfo]:
    """The topics with the replicas that moving partitions have besides those being added."""
    moving = {name.topic for name in moves}
    return [_without_added(topic, moves) if topic.name in moving else topic for topic in topics]


def _without_added(topic: TopicInfo, moves: Moves) -> TopicInfo:
    partitions = []
    for each in topic.partitions:
        move = moves.get(TopicPartition(topic.name, each.partition))
        added = () if move is None else move.adding_replicas
        kept = tuple(broker_id for broker_id in each.replicas if broker_id not in added)
        partitions.append(each._replace(replicas=kept) if kept else each)
    return topic._replace(partitions=tuple(partitions))


async def find_topics(connection: ClusterConnection) -> tuple[list[TopicInfo], Moves]:
    """All topics, and the partitions that moved when they were told.

    Moves are asked for before and after: one that ends or begins in between would look as if its
    partition lacked a replica. Where a cluster does not tell of moves there are none, and every
    replica counts.
    """
    operations = ReassignmentOperations(connection)
    before = await told(operations.list_partition_reassignments())
    topics = await TopicOperations(connection).list_topics()
    if before is None:
        return topics, {}
    after = await told(operations.list_partition_reassignments())
    return topics, {**before, **(after or {})}


def is_under_replicated(partition: PartitionInfo) -> bool:
    return len(partition.isr) < len(partition.replicas)


async def find_under_min_isr(
    connection: ClusterConnection, topics: Collection[TopicInfo]
) -> list[TopicPartition]:
    """Partitions that refuse acks=all because too few replicas are in sync.

    Only topics with replicas that are behind are asked for their settings; those that do not tell
    them are left out.
    """
    behind = [topic for topic in topics if any(map(is_under_replicated, topic.partitions))]
    if not behind:
        return []
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in behind]
    outcomes = await ConfigOperations(connection).describe_configs(resources, names=[MIN_ISR])
    short = []
    for topic, resource in zip(behind, resources, strict=True):
        entries = outcomes[resource]
        if isinstance(entries, KafkaError):
            continue
        wanted = next((int(each.value or 1) for each in entries if each.name == MIN_ISR), 1)
        short += [
            TopicPartition(topic.name, each.partition)
            for each in topic.partitions
            # No more can be wanted than there are.
            if each.has_leader and len(each.isr) < min(wanted, len(each.replicas))
        ]
    return short
