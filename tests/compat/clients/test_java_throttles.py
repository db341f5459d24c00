"""Apache Kafka's own tools throttle moves, make them up, and move replicas between directories."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from headwater import AsyncAdmin, AsyncProducer, TopicPartition
from headwater.testing.apache_kafka import ToolFailedError, run_tool
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.kafka.node import require_apache_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.full]

TOPIC = "orders"
BROKER_IDS = (1, 2, 3, 4)
_ALTER = "replica.alter.log.dirs.io.max.bytes.per.second"


class _Tools:
    def __init__(self, cluster: BrokerCluster, directory: Path) -> None:
        self._cluster = cluster
        self._directory = directory
        self._kafka = require_apache_kafka()

    def file(self, name: str, content: object) -> str:
        path = self._directory / name
        path.write_text(json.dumps({"version": 1, **content}))  # type: ignore[dict-item]
        return str(path)

    async def run(self, name: str, *args: str) -> str:
        address = ["--bootstrap-server", self._cluster.bootstrap]
        done = await asyncio.to_thread(run_tool, name, [*address, *args], kafka=self._kafka)
        return done.stdout


def test_throttled_and_generated_moves_also_between_directories(tmp_path: Path) -> None:
    paths = {each: [str(tmp_path / f"{each}-{name}") for name in "ab"] for each in BROKER_IDS}

    async def scenario(cluster: BrokerCluster) -> None:
        java = _Tools(cluster, tmp_path)
        await cluster.create_topic(TOPIC, [[1, 2], [2, 1]])
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(300):
                await producer.send(TOPIC, os.urandom(10_000), partition=number % 2)

        topics = java.file("topics.json", {"topics": [{"topic": TOPIC}]})
        told = await java.run(
            *("reassign-partitions", "--generate", "--broker-list", "1,2,3"),
            *("--topics-to-move-json-file", topics),
        )
        proposed = json.loads(told.split("Proposed partition reassignment configuration\n")[1])
        assert [each["topic"] for each in proposed["partitions"]] == [TOPIC, TOPIC]

        # One of ours that takes its time: the tool's moves come in addition.
        async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.alter_partition_reassignments(
                {TopicPartition(TOPIC, 1): [2, 4]}, throttle_bytes=300
            )
        rows = [
            {"topic": TOPIC, "partition": 0, "replicas": [3, 1], "log_dirs": [paths[3][1], "any"]}
        ]
        moves = ["--reassignment-json-file", java.file("moves.json", {"partitions": rows})]
        with pytest.raises(ToolFailedError, match="--additional"):
            await java.run("reassign-partitions", "--execute", *moves)
        throttles = ["--throttle", "400000", "--replica-alter-log-dirs-throttle", "600000"]
        told = await java.run(
            "reassign-partitions", "--execute", "--additional", *moves, *throttles
        )
        assert f"Successfully started partition reassignment for {TOPIC}-0" in told
        assert cluster.image.broker_configs(3)["leader.replication.throttled.rate"] == "400000"
        assert cluster.image.broker_configs(3)[_ALTER] == "600000"
        assert (
            "0:3" in cluster.image.topic_configs(TOPIC)["follower.replication.throttled.replicas"]
        )
        await cluster.until(lambda: cluster.partition(TOPIC).replicas == (3, 1))
        describes = "log-dirs", "--describe", "--topic-list", TOPIC, "--broker-list", "3"
        while paths[3][1] not in (told := await _directory_of(java, describes)):
            assert told
        told = await java.run("reassign-partitions", "--verify", *moves)
        assert f"Reassignment of partition {TOPIC}-0 is completed." in told
        assert f"Reassignment of replica {TOPIC}-0-3 completed successfully." in told
        assert "Clearing" not in told, "not while anything moves"

        cancelled = java.file(
            "cancelled.json", {"partitions": [{"topic": TOPIC, "partition": 1, "replicas": [2, 4]}]}
        )
        told = await java.run(
            *("reassign-partitions", "--cancel", "--preserve-throttles"),
            *("--reassignment-json-file", cancelled),
        )
        assert f"Successfully cancelled partition reassignment for: {TOPIC}-1" in told
        await cluster.until(lambda: not cluster.partition(TOPIC, 1).is_moving)
        assert cluster.partition(TOPIC, 1).throttle == 0
        told = await java.run("reassign-partitions", "--verify", *moves)
        assert "Clearing broker-level throttles" in told
        assert not cluster.image.broker_configs(3)
        assert not cluster.image.topic_configs(TOPIC)
        told = await java.run(
            *("leader-election", "--election-type", "preferred"),
            *("--topic", TOPIC, "--partition", "0"),
        )
        assert f"{TOPIC}-0" in told
        told = await java.run("topics", "--describe", "--topic", TOPIC)
        assert "Leader: 3\tReplicas: 3,1" in told

    run_cluster_scenario(
        tmp_path / "cluster",
        scenario,
        {"replica.fetch.max.bytes": "20000", "log.initial.task.delay.ms": "100"},
        BROKER_IDS,
        settings_of={each: {"log.dirs": ",".join(some)} for each, some in paths.items()},
    )


async def _directory_of(java: _Tools, describe: tuple[str, ...]) -> str:
    """Where broker 3 has the partition, and not only its copy."""
    *_, report = (await java.run(*describe)).strip().splitlines()
    return next(
        (
            str(directory["logDir"])
            for broker in json.loads(report)["brokers"]
            for directory in broker["logDirs"]
            for each in directory["partitions"]
            if each["partition"] == f"{TOPIC}-0" and not each["isFuture"]
        ),
        "",
    )
