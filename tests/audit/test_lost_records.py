"""What was counted and is gone, without anybody having deleted it, is told as lost."""

import asyncio
from pathlib import Path

from headwater.audit.topic_book import TopicBook, make_book
from headwater.wire.records import Record, encode_batch
from tests.support.audit.audit_rows import all_rows
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario

MINUTE_MS = 60_000
TIME_MS = 1_700_000_000_000 // MINUTE_MS * MINUTE_MS
SETTINGS = {
    "audit.topic.num.partitions": "1",
    "audit.topic.replication.factor": "3",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
    "replica.lag.time.max.ms": "1000",
}


def append(cluster: BrokerCluster, count: int, minute: int = 0) -> None:
    partition = cluster.context(cluster.leader_of("orders")).partitions.get("orders", 0)
    for _ in range(count):
        time_ms = TIME_MS + minute * MINUTE_MS
        batch = bytearray(encode_batch([Record(0, time_ms, b"k", b"v")]))
        partition.append(batch, acks=1, now_ms=time_ms)


async def until_told(cluster: BrokerCluster, count: int, lost: int = 0) -> TopicBook:
    while True:
        for server in list(cluster.servers.values()):
            server.context.audit_publisher.look()
            await server.context.audit_publisher.publish_all()
        rows = all_rows(server.context for server in cluster.servers.values())
        book = make_book("orders", rows, from_ms=0, to_ms=2**62, now_ms=0)
        assert book.count <= count
        if (book.count, book.lost_count) == (count, lost):
            return book
        await asyncio.sleep(0.01)


def test_what_an_unclean_election_took_is_lost_and_what_takes_its_place_is_counted(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]])
        append(cluster, 4)
        await cluster.until_in_sync("orders")
        await until_told(cluster, 4)
        await cluster.stop(2)
        await cluster.until(lambda: cluster.partition("orders").isr == (1,))
        append(cluster, 5)
        append(cluster, 1, minute=1)
        await until_told(cluster, 10)
        await cluster.stop(1)
        await cluster.start(2)
        await cluster.until(lambda: cluster.leader_of("orders") == 2)
        # More than was lost comes before anybody asks up to where was counted.
        append(cluster, 9, minute=2)
        book = await until_told(cluster, 19, lost=6)
        assert [(each.count, each.lost_count) for each in book.buckets] == [(9, 5), (1, 1), (9, 0)]
        assert book.stored_count == 13
        assert book.alarms == [
            "6 records that were stored are lost: an unclean election or a lost disk took them."
        ]
        append(cluster, 1, minute=2)
        await until_told(cluster, 20, lost=6)
        await cluster.start(1)  # It takes over what the other has, and tells nothing of its own.
        await cluster.until_in_sync("orders")
        await until_told(cluster, 20, lost=6)

    run_cluster_scenario(tmp_path, scenario, SETTINGS)
