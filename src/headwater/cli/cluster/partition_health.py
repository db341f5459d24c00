"""Which partitions of a cluster lack something: a leader, replicas in sync, their preferred leader.

Counted from what Metadata tells, so it works against every Kafka. A preferred leader is the first
of a partition's replicas.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import ConfigOperations, ConfigResource, ResourceType
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo

MIN_ISR: Final = "min.insync.replicas"


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
