"""Apache Kafka's own kafka-reassign-partitions moves partitions of a cluster, unchanged."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from headwater import AsyncAdmin, TopicPartition
from headwater.client.admin import ConfigChange, ConfigResource, ResourceType
from headwater.testing.apache_kafka import run_tool
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.kafka.node import require_apache_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.full]

TOPIC = "orders"


class _ReassignPartitions:
    """The tool, with a file that says where the partitions shall be."""

    def __init__(self, cluster: BrokerCluster, path: Path) -> None:
        self._cluster = cluster
        self._path = path
        self._kafka = require_apache_kafka()

    def want(self, targets: dict[int, list[int]]) -> None:
        rows = [
            {"topic": TOPIC, "partition": number, "replicas": replicas}
            for number, replicas in targets.items()
        ]
        self._path.write_text(json.dumps({"version": 1, "partitions": rows}))

    async def run(self, *args: str) -> str:
        with_file = args[0] in ("--execute", "--verify", "--cancel")
        file = ["--reassignment-json-file", str(self._path)] if with_file else []
        return await self.tool("reassign-partitions", *args, *file)

    async def unregister(self, broker_id: int) -> str:
        args = ["unregister", "--bootstrap-server", self._cluster.bootstrap, "--id", broker_id]
        done = await asyncio.to_thread(
            run_tool, "cluster", list(map(str, args)), kafka=self._kafka, check_exit=False
        )
        return done.stdout + done.stderr

    async def tool(self, name: str, *args: str) -> str:
        address = ["--bootstrap-server", self._cluster.bootstrap]
        done = await asyncio.to_thread(run_tool, name, [*address, *args], kafka=self._kafka)
        return done.stdout


def test_execute_verify_list_and_cancel(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("held", [[4, 1]])
        await cluster.create_topic(TOPIC, [[1, 2], [2, 1]])
        java = _ReassignPartitions(cluster, tmp_path / "moves.json")
        assert "No partition reassignments found." in await java.run("--list")

        java.want({0: [3, 4], 1: [4, 2, 3]})
        told = await java.run("--execute", "--throttle", "50000000")
        assert f"Successfully started partition reassignments for {TOPIC}-0,{TOPIC}-1" in told
        assert cluster.image.broker_configs(3)["leader.replication.throttled.rate"] == "50000000"
        await cluster.until(lambda: not any(_is_moving(cluster, each) for each in (0, 1)))
        told = await java.run("--verify")
        for number in (0, 1):
            assert f"Reassignment of partition {TOPIC}-{number} is completed." in told
        assert "throttled.rate" not in str(dict(cluster.image.broker_configs(3)))
        assert [cluster.partition(TOPIC, each).replicas for each in (0, 1)] == [(3, 4), (4, 2, 3)]

        # To one who is not there it lasts, until it is cancelled. The tool would not begin it.
        await cluster.stop(4)
        await cluster.until(lambda: 4 not in cluster.image.brokers)
        java.want({0: [1, 4]})
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.alter_partition_reassignments({TopicPartition(TOPIC, 0): [1, 4]})
        told = await java.run("--list")
        assert f"{TOPIC}-0: replicas: 1,4,3. adding: 1. removing: 3." in told
        told = await java.tool("topics", "--describe", "--topic", TOPIC)
        assert "Adding Replicas: 1\tRemoving Replicas: 3" in told
        assert f"Reassignment of partition {TOPIC}-0 is still in progress." in await java.run(
            "--verify", "--preserve-throttles"
        )
        told = await java.run("--cancel", "--preserve-throttles")
        assert f"Successfully cancelled partition reassignment for: {TOPIC}-0" in told
        # The new replica stays for as long as too few would be in sync without it.
        assert set(cluster.partition(TOPIC).removing) == {1}
        await cluster.start(4)
        await cluster.until(lambda: set(cluster.partition(TOPIC).replicas) == {3, 4})
        assert "No partition reassignments found." in await java.run("--list")

    run_cluster_scenario(
        tmp_path / "cluster", scenario, {"replica.lag.time.max.ms": "2000"}, (1, 2, 3, 4)
    )


def test_a_broker_is_unregistered(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        java = _ReassignPartitions(cluster, tmp_path / "moves.json")
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            resource = ConfigResource(ResourceType.BROKER, "3")
            await admin.alter_configs({resource: [ConfigChange("num.replica.fetchers", "2")]})
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in cluster.image.brokers)
        for verdict in ("is no longer registered", "BrokerIdNotRegisteredException"):
            assert verdict in await java.unregister(3)

    run_cluster_scenario(tmp_path / "cluster", scenario)


def _is_moving(cluster: BrokerCluster, number: int) -> bool:
    return cluster.partition(TOPIC, number).is_moving
