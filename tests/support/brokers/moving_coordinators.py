"""Keys whose coordinator is a certain broker, and ways to have another one take over."""

from __future__ import annotations

from itertools import count

from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.coordinator.key_hash import partition_for
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.brokers.broker_cluster import BrokerCluster


async def make_topic(cluster: BrokerCluster, kind: CoordinatorKind) -> None:
    """Have the coordinators' topic made, and wait until all of it is in sync."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
    response = await cluster.send(cluster.others()[0], request)
    assert response.coordinators[0].error_code == 0
    await cluster.until_in_sync(kind.topic)


def key_at(cluster: BrokerCluster, kind: CoordinatorKind, broker_id: int) -> str:
    """A group or a transactional id that this broker coordinates."""
    return next(
        key
        for key in (f"key-{number}" for number in count())
        if coordinator_of(cluster, kind, key) == broker_id
    )


def coordinator_of(cluster: BrokerCluster, kind: CoordinatorKind, key: str) -> int:
    """The broker that coordinates a key now."""
    return cluster.leader_of(kind.topic, partition_of(cluster, kind, key))


def partition_of(cluster: BrokerCluster, kind: CoordinatorKind, key: str) -> int:
    return partition_for(key, len(cluster.image.topics[kind.topic].partitions))


async def new_coordinator(cluster: BrokerCluster, kind: CoordinatorKind, key: str) -> int:
    """Wait until a running broker coordinates a key, and return which."""
    await cluster.until(lambda: coordinator_of(cluster, kind, key) in cluster.servers)
    return coordinator_of(cluster, kind, key)
