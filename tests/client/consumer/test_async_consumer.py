"""`AsyncConsumer` on a running cluster: the same core on the caller's loop, without a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.errors import ConcurrentUseError, WakeupError
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.errors import ClientClosedError
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.values.filled_topics import fill, new_topic, numbers


def member(cluster: Cluster, group_id: str, **settings: Any) -> AsyncConsumer:
    settings = {"auto_offset_reset": "earliest", "group_id": group_id} | settings
    return AsyncConsumer(bootstrap_servers=cluster.bootstrap, **settings)


async def read(consumer: AsyncConsumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(30.0):
        while len(records) < count:
            records += await consumer.poll(1.0)
    assert len(records) == count
    return records


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@run_async
async def test_a_group_is_read_without_a_thread(cluster: Cluster, protocol: str) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 30)
    told: list[str] = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(self, consumer: AsyncConsumer, partitions: Any) -> None:
            told.append(f"assigned {len(await consumer.committed(partitions))}")

        def on_partitions_revoked(self, consumer: AsyncConsumer, partitions: Any) -> None:
            told.append(f"revoked {len(partitions)}")

    async with member(cluster, topic, group_protocol=protocol) as consumer:
        await consumer.subscribe([topic], listener=Listener())
        seen = []
        async for record in consumer:
            seen.append(int(record.value))
            if len(seen) == 12:
                break
        # The thread of a `Consumer` has its client id for a name.
        assert not [thread for thread in threading.enumerate() if topic in thread.name]
        assert consumer.group_identity().generation_id > 0
    assert told == ["assigned 2", "revoked 2"]
    async with member(cluster, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic])
        seen += numbers(await read(consumer, 18))
    assert seen == list(range(30))


@run_async
async def test_positions_commits_and_questions(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 20)
    partition = TopicPartition(topic, 0)
    heard: list[object] = []
    async with member(cluster, topic, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        assert await consumer.position(partition) == 0
        consumer.seek(partition, 5)
        assert numbers(await consumer.poll(10.0, max_records=2)) == [5, 6]
        assert await consumer.lag() == {partition: 13}
        await consumer.commit()
        committed = (await consumer.committed([partition]))[partition]
        assert committed is not None and committed.offset == 7
        consumer.commit_async({partition: 9}, lambda offsets, error: heard.append(error))
        consumer.pause([partition])
        assert consumer.paused() == {partition}
        async with asyncio.timeout(10.0):
            while not heard:
                assert await consumer.poll(0.05) == []
        assert heard == [None]
        consumer.resume([partition])
        assert numbers(await read(consumer, 13)) == list(range(7, 20))
        await consumer.seek_to_beginning()
        batch = await consumer.poll_arrow(10.0, schema=pa.schema([("offset", pa.int64())]))
        assert batch.to_pydict() == {"offset": list(range(batch.num_rows))}
        found = await consumer.offsets_for_times({partition: 3000})
        assert [place and place.offset for place in found.values()] == [2]
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 20}
        assert len(await consumer.partitions_for(topic)) == 1
        assert topic in await consumer.topics()
        assert consumer.metrics()["commit-total"] == 2
        await consumer.unsubscribe()
        assert consumer.assignment() == set()


@run_async
async def test_who_is_out_of_its_group_stays_who_it_was(cluster: Cluster) -> None:
    """A late commit in a transaction must not go out without the member's name."""
    topic = new_topic(cluster)
    async with member(
        cluster, topic, max_poll_interval_ms=500, heartbeat_interval_ms=100
    ) as consumer:
        consumer.subscribe([topic])
        async with asyncio.timeout(30.0):
            while not consumer.assignment():
                await consumer.poll(0.1)
            identity = consumer.group_identity()
            assert identity.generation_id >= 0
            membership = consumer._core.group.membership
            assert membership is not None
            while membership.identity.generation_id >= 0:
                await asyncio.sleep(0.05)
        assert consumer.group_identity() == identity


@run_async
async def test_waking_up_and_closing(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    consumer = AsyncConsumer(bootstrap_servers=cluster.bootstrap)
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    waiting = asyncio.create_task(consumer.poll(30.0))
    await asyncio.sleep(0)
    with pytest.raises(ConcurrentUseError):
        await consumer.poll(0.0)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        await waiting
    await consumer.close()
    await consumer.close()
    with pytest.raises(ClientClosedError):
        await consumer.poll()


def test_it_can_be_made_without_a_loop() -> None:
    consumer = AsyncConsumer(bootstrap_servers="127.0.0.1:1")
    asyncio.run(consumer.close())
    with pytest.raises(ClientClosedError):
        consumer.assignment()
