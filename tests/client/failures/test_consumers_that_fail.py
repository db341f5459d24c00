"""Consumers send on what they could not handle: `retry_later` and `dead_letter`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headwater import Admin, AsyncConsumer, AsyncProducer, Consumer, NewTopic, Producer
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import Retry
from tests.support.brokers.clusters import HEADWATER, Cluster, running_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from running_cluster(HEADWATER, tmp_path_factory.mktemp("cluster"))


def place(cluster: Cluster) -> tuple[str, str]:
    """A topic with two records, and a group with a retry topic."""
    topic, group = cluster.new_name("orders"), cluster.new_name("billing")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1), NewTopic(f"retry.{group}", 1)])
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in (b"first", b"second"):
            producer.send(topic, value, b"key")
    return topic, group


def sent_on(cluster: Cluster, group: str) -> list[ConsumerRecord]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap, group_id="reader", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([f"retry.{group}"])
        found: list[ConsumerRecord] = []
        while len(found) < 2:
            found += consumer.poll()
        return found


def check_sent_on(cluster: Cluster, topic: str, group: str) -> None:
    first, second = sent_on(cluster, group)
    assert (first.value, second.value) == (b"first", b"second")
    assert dict(first.headers)["headwater-retry-after"] == b"30s"
    assert dict(first.headers)["headwater-origin"] == f"{topic}-0@0".encode()
    assert dict(second.headers)["headwater-dead"] == b"nonsense"


def test_with_threads(cluster: Cluster) -> None:
    topic, group = place(cluster)
    servers = cluster.bootstrap
    with (
        Consumer(
            bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest"
        ) as consumer,
        Producer(bootstrap_servers=servers) as producer,
    ):
        consumer.subscribe([topic])
        records: list[ConsumerRecord] = []
        while len(records) < 2:
            records += consumer.poll()
        consumer.retry_later(records[0], Retry("busy", after="30s"), producer=producer).result(10)
        consumer.dead_letter(records[1], "nonsense", producer=producer).result(10)
        consumer.commit()
    check_sent_on(cluster, topic, group)


def test_with_asyncio(cluster: Cluster) -> None:
    topic, group = place(cluster)
    servers = cluster.bootstrap

    async def run() -> None:
        async with (
            AsyncConsumer(
                bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest"
            ) as consumer,
            AsyncProducer(bootstrap_servers=servers) as producer,
        ):
            consumer.subscribe([topic])
            records: list[ConsumerRecord] = []
            while len(records) < 2:
                records += await consumer.poll()
            await (await consumer.retry_later(records[0], "busy", producer=producer, after=30))
            await (await consumer.dead_letter(records[1], "nonsense", producer=producer))
            await consumer.commit()

    asyncio.run(asyncio.wait_for(run(), 30))
    check_sent_on(cluster, topic, group)
