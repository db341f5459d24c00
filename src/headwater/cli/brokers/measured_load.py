"""What the brokers of a cluster hold and take in, measured for a planner.

Sizes come from the brokers' log directories. Looked at twice, they tell how much is written to each
partition; what consumers read is told by no API of Kafka's, so it does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from headwater.balance.cluster_load import BrokerLoad, ClusterLoad, PartitionLoad, Resource
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import BrokerOperations, TopicOperations
from headwater.client.admin.brokers import LogDirectory
from headwater.client.connection.cluster_connection import ClusterConnection

#: The sizes of each partition's replicas, by broker.
Sizes = Mapping[int, Mapping[TopicPartition, int]]


async def measure(connection: ClusterConnection, watch_s: float) -> ClusterLoad:
    """The load of every partition; with `watch_s` the traffic of so many seconds too."""
    brokers = BrokerOperations(connection)
    cluster = await brokers.describe_cluster()
    broker_ids = [broker.broker_id for broker in cluster.brokers]
    first = await _directories(brokers, broker_ids)
    before, after = _sizes(first), _sizes(first)
    if watch_s > 0:
        await asyncio.sleep(watch_s)
        after = _sizes(await _directories(brokers, broker_ids))
    topics = await TopicOperations(connection).list_topics()
    partitions = []
    for topic in topics:
        for info in topic.partitions:
            key = TopicPartition(topic.name, info.partition)
            size_bytes = max(
                (after[each].get(key, 0) for each in info.replicas if each in after), default=0
            )
            grown = after.get(info.leader_id, {}).get(key, 0) - before.get(info.leader_id, {}).get(
                key, 0
            )
            rate = int(max(0, grown) / watch_s) if watch_s > 0 else 0
            partitions.append(PartitionLoad(key, info.replicas, size_bytes, rate))
    return ClusterLoad.of(
        (
            BrokerLoad(
                broker.broker_id,
                broker.rack,
                is_cordoned=all(each.is_cordoned for each in first[broker.broker_id]),
                capacity=_capacity(first[broker.broker_id]),
            )
            for broker in cluster.brokers
        ),
        partitions,
    )


async def _directories(
    brokers: BrokerOperations, broker_ids: list[int]
) -> dict[int, list[LogDirectory]]:
    """Those of every broker: a plan that knows only some would move everything onto the others."""
    found: dict[int, list[LogDirectory]] = {}
    for broker_id, outcome in (await brokers.describe_log_dirs(broker_ids)).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[broker_id] = outcome
    return found


def _sizes(directories: Mapping[int, list[LogDirectory]]) -> dict[int, dict[TopicPartition, int]]:
    return {
        broker_id: {
            key: replica.size_bytes
            for directory in some
            for key, replica in directory.replicas.items()
            if not replica.is_future
        }
        for broker_id, some in directories.items()
    }


def _capacity(directories: list[LogDirectory]) -> dict[Resource, int]:
    """What its replicas may take of its disks: what they take now, and what is free."""
    if any(each.usable_bytes < 0 for each in directories):
        return {}
    used = sum(replica.size_bytes for each in directories for replica in each.replicas.values())
    free = sum(each.usable_bytes for each in directories if not each.is_cordoned)
    return {Resource.DISK: used + free}
