"""Three brokers: whoever leads next goes on where the last leader stopped."""

import asyncio
from pathlib import Path

from headwater.audit.rows import NO_EPOCH, Row
from headwater.audit.shard import Published
from headwater.wire.records import Record, encode_batch
from tests.support.audit.audit_rows import all_rows, check_stretches
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

TIME_MS = 1_700_000_000_000
SETTINGS = {"audit.topic.num.partitions": "2", "audit.topic.replication.factor": "3"}


def append(cluster: BrokerCluster, count: int) -> None:
    leader = cluster.context(cluster.leader_of("orders"))
    partition = leader.partitions.get("orders", 0)
    for _ in range(count):
        batch = bytearray(encode_batch([Record(0, TIME_MS, b"k", b"v")]))
        partition.append(batch, acks=1, now_ms=TIME_MS)


async def publish(cluster: BrokerCluster) -> None:
    for server in list(cluster.servers.values()):
        server.context.audit_publisher.look()
        await server.context.audit_publisher.publish_all()


async def until_counted(cluster: BrokerCluster, count: int) -> list[Row]:
    """Publishing may fail while leaders change: it is tried again, as it would be."""
    rounds = 0
    while True:
        rounds += 1
        assert rounds < 2_000
        await publish(cluster)
        await asyncio.sleep(0.01)
        rows = all_rows(server.context for server in cluster.servers.values())
        found = sum(row["count"] for row in rows if row["tier"] == "broker")
        assert found <= count
        if found == count:
            check_stretches(rows)
            return rows


def test_the_next_leader_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        append(cluster, 5)
        await cluster.until_in_sync("orders")
        await until_counted(cluster, 5)
        append(cluster, 3)  # The first leader does not get to publish these.
        await cluster.until_in_sync("orders")
        first = cluster.leader_of("orders")
        await cluster.stop(first)
        await cluster.until(lambda: cluster.leader_of("orders") not in (first, -1))
        append(cluster, 2)
        rows = await until_counted(cluster, 10)
        hosts = {row["host"] for row in rows if row["tier"] == "broker"}
        assert len(hosts) == 2, "two leaders published"
        await cluster.start(first)
        await until_counted(cluster, 10)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)


def test_a_stretch_is_taken_once(tmp_path: Path) -> None:
    """A leader that does not know what was published counts again, and is not believed."""

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        append(cluster, 4)
        await cluster.until_in_sync("orders")
        await until_counted(cluster, 4)
        publisher = cluster.context(cluster.leader_of("orders")).audit_publisher
        for source in publisher._sources.values():
            source.begin(Published(0, NO_EPOCH), 60_000, 0, 0)
        append(cluster, 1)
        await cluster.until_in_sync("orders")
        await until_counted(cluster, 5)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)
