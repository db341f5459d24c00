"""`headwater brokers describe` and `unregister`: a broker looked at, and retired."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from headwater import AsyncProducer
from headwater.cluster.brokers.unregistration import config_resource
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command


async def _brokers(cluster: BrokerCluster, *arguments: object) -> Finished:
    return await asyncio.to_thread(run_command, "brokers", *arguments, "-b", cluster.bootstrap)


def test_a_broker_is_described(cluster: Cluster, topic: str) -> None:
    where = ("--watch-seconds", 0, "-b", cluster.bootstrap)
    shown = run_command("brokers", "describe", cluster.broker_id, *where)
    assert (shown.exit_code, shown.stderr) == (0, "")
    facts = {line.split()[0]: line.split()[1:] for line in shown.lines if len(line.split()) > 1}
    assert facts["address"] == [cluster.bootstrap]
    assert facts["state"] == ["up"]
    assert facts["written"] == ["-"]
    assert "What is missing" not in shown.stdout
    told = run_command("brokers", "describe", cluster.broker_id, "--json", *where)
    document: dict[str, Any] = json.loads(told.stdout)
    assert document["leaders"] == document["replicas"] >= 3
    assert sum(each["replicas"] for each in document["directories"]) == document["replicas"]
    assert document["out_of_sync"] == []
    nobody = run_command("brokers", "describe", 4711, *where)
    assert nobody.exit_code == 1
    assert "There is no broker 4711; the cluster has" in nobody.stderr


def test_a_broker_that_is_written_to(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]])
        await cluster.until_in_sync("orders")
        done = asyncio.Event()

        async def write() -> None:
            async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
                while not done.is_set():
                    await (await producer.send("orders", b"x" * 1000))

        writing = asyncio.ensure_future(write())
        told = await _brokers(cluster, "describe", 1, "--watch-seconds", 0.5, "--json")
        done.set()
        await writing
        assert json.loads(told.stdout)["bytes_in_per_second"] > 1000

    run_cluster_scenario(tmp_path, scenario)


def test_a_broker_is_retired(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[3, 1], [1, 3]])
        await cluster.until_in_sync("orders")
        where = ("--entity-type", "brokers", "--entity-name", 3, "-b", cluster.bootstrap)
        changed = await asyncio.to_thread(
            run_command, "configs", "alter", *where, "--add-config", "num.replica.fetchers=2"
        )
        assert changed.exit_code == 0, changed.stderr
        # While it lives, and has replicas, nobody is asked twice.
        refused = await _brokers(cluster, "unregister", 3)
        assert refused.exit_code == 2
        for words in ("Broker 3 is alive", "`headwater brokers drain 3`", "give --yes"):
            assert words in refused.stderr
        refused = await _brokers(cluster, "unregister", 3, "--yes")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "Broker 3 is alive" in refused.stderr

        drained = await _brokers(cluster, "drain", 3, "--yes", "--watch-seconds", 0)
        assert drained.exit_code == 0, drained.stderr
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in cluster.image.brokers)
        assert config_resource(3) in cluster.image.configs
        done = await _brokers(cluster, "unregister", 3)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "Broker 3 is unregistered" in done.stdout
        assert config_resource(3) not in cluster.image.configs
        again = await _brokers(cluster, "unregister", 3)
        assert again.exit_code == 0
        assert "is not registered: nothing is kept" in again.stdout

    run_cluster_scenario(tmp_path, scenario)


def test_what_a_broker_lacks(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.until_in_sync("orders")
        await cluster.stop(3)
        await cluster.until(lambda: cluster.partition("orders").isr == (1, 2))
        shown = await _brokers(cluster, "describe", 3)
        assert (shown.exit_code, shown.stderr) == (0, "")
        rows = [line.split() for line in shown.lines]
        assert ["state", "missing"] in rows
        assert ["orders-0", "1", "1,2", "-"] in rows

    run_cluster_scenario(tmp_path, scenario)
