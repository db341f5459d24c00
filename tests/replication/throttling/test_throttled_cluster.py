"""Real brokers with throttles, of settings and of moves; neither delays who is in sync."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater import AsyncAdmin, AsyncProducer, TopicPartition
from headwater.client.admin import ConfigChange, ConfigResource, ResourceType
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

TOPIC = "orders"
T0 = TopicPartition(TOPIC, 0)
#: Small fetches, so that a little data takes many.
SETTINGS = {"replica.fetch.max.bytes": "20000", "replica.fetch.response.max.bytes": "20000"}


async def _write(cluster: BrokerCluster, count: int) -> None:
    async with AsyncProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", batch_size=10_000
    ) as producer:
        for _ in range(count):
            await producer.send(TOPIC, os.urandom(9_000), partition=0)


def _has(cluster: BrokerCluster, broker_id: int) -> int:
    found = cluster.servers[broker_id].context.partitions.find(*T0)
    return -1 if found is None else found.log_end_offset


def test_a_move_keeps_to_its_throttle_and_takes_it_away(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2]])
        await _write(cluster, 30)
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            # What a quarter of an hour would not be enough for.
            await admin.alter_partition_reassignments({T0: [3, 2]}, throttle_bytes=300)
            await cluster.until(lambda: _has(cluster, 3) > 0)
            move = (await admin.list_partition_reassignments())[T0]
            assert (move.adding_replicas, move.throttle_bytes) == ((3,), 300)
            # Nobody waits for it: those in sync have all of it at once.
            await _write(cluster, 20)
            await cluster.until(lambda: _has(cluster, 2) == 50)
            assert _has(cluster, 3) < 30
            assert cluster.partition(TOPIC).isr == (1, 2)
            assert list(await admin.throttle_partition_reassignments(1_000_000_000)) == [T0]
            await cluster.until(lambda: cluster.partition(TOPIC).replicas == (3, 2))
            assert await admin.throttle_partition_reassignments(5) == {}
        throttles = [each.context.partitions.throttles for each in cluster.servers.values()]
        await cluster.until(lambda: not any(each.leading or each.following for each in throttles))
        assert _has(cluster, 3) == 50

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_kafkas_settings_throttle_and_are_dynamic(tmp_path: Path, side: str) -> None:
    brokers = ConfigResource(ResourceType.BROKER, "")
    topic = ConfigResource(ResourceType.TOPIC, TOPIC)
    rate, replicas = (f"{side}.replication.throttled.{each}" for each in ("rate", "replicas"))

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2]])
        await _write(cluster, 30)
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.alter_configs({brokers: [ConfigChange(rate, "300")]})
            broker_id = 1 if side == "leader" else 3
            await admin.alter_configs({topic: [ConfigChange(replicas, f"0:{broker_id}")]})
            await admin.alter_partition_reassignments({T0: [1, 2, 3]})
            await cluster.until(lambda: _has(cluster, 3) > 0)
            await _write(cluster, 20)
            await cluster.until(lambda: _has(cluster, 2) == 50)
            assert _has(cluster, 3) < 30
            assert cluster.partition(TOPIC).isr == (1, 2)
            await admin.alter_configs({brokers: [ConfigChange(rate, "1000000000")]})
            await cluster.until(lambda: set(cluster.partition(TOPIC).isr) == {1, 2, 3})

    run_cluster_scenario(tmp_path, scenario, SETTINGS)
