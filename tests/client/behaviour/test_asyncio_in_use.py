"""The asyncio client as a user has it, on Headwater and on Apache Kafka: no thread is started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

import pytest

from headwater import AsyncConsumer, AsyncProducer, KafkaError, RecordMetadata, TopicPartition
from headwater.client.consumer.listeners import RebalanceListener
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import (
    create_topic,
    numbers,
    partitions_of,
    read_all,
    values_of,
)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that are started from this one; a broker in this process has its own."""
    names: list[str] = []
    own, start = threading.current_thread(), threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        if threading.current_thread() is own:
            names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return names


@run_async
async def test_who_sends_without_end_lets_others_run_after_several_batches(
    cluster: Cluster,
) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 6)
    turn_count = 0

    async def count_turns() -> None:
        nonlocal turn_count
        while True:
            turn_count += 1
            await asyncio.sleep(0)

    async with AsyncProducer(bootstrap_servers=cluster.bootstrap, batch_size=16_384) as producer:
        await producer.send_and_wait(topic, b"first")
        others = asyncio.create_task(count_turns())
        # Sixteen records fill a batch.
        for _ in range(16 * 160):
            await producer.send(topic, bytes(1_000))
        seen_count = turn_count
        others.cancel()
    assert 160 / 16 < seen_count < 160 / 4


@run_async
async def test_records_go_in_and_out_without_a_thread(cluster: Cluster, started: list[str]) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    # The administrator for threads has one.
    assert started
    started.clear()
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
        futures = [
            await producer.send(topic, value, partition=index % 2)
            for index, value in enumerate(numbers(0, 200))
        ]
        metadata = await asyncio.gather(*(_wait(future) for future in futures))
        assert [each.offset for each in metadata] == [index // 2 for index in range(200)]
        alone = await producer.send_and_wait(topic, b"alone", partition=0)
        assert alone.offset == 100
        await producer.flush()
    async with AsyncConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        await consumer.assign(partitions_of(topic, 2))
        seen = []
        async for record in consumer:
            seen.append(record)
            if len(seen) == 201:
                break
        assert await consumer.position(TopicPartition(topic, 0)) == 101
    for partition in (0, 1):
        mine = [record.offset for record in seen if record.partition == partition]
        assert mine == list(range(101 if partition == 0 else 100))
    assert started == []


async def _wait(future: Awaitable[RecordMetadata]) -> RecordMetadata:
    return await future


@run_async
async def test_a_group_with_listeners_that_are_coroutines(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    group = cluster.new_name("group")
    events: list[str] = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(
            self, consumer: AsyncConsumer, partitions: frozenset[TopicPartition]
        ) -> None:
            await asyncio.sleep(0)
            events.append(f"assigned {len(partitions)}")

        async def on_partitions_revoked(
            self, consumer: AsyncConsumer, partitions: frozenset[TopicPartition]
        ) -> None:
            await consumer.commit()
            events.append(f"revoked {len(partitions)}")

    async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for index, value in enumerate(numbers(0, 40)):
            await producer.send(topic, value, partition=index % 2)

    def member(listener: RebalanceListener | None = None) -> AsyncConsumer:
        return AsyncConsumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
        )

    seen: list[bytes | None] = []
    async with member() as first, member() as second:
        await first.subscribe([topic], listener=Listener())
        async with asyncio.timeout(30):
            while len(seen) < 40:
                seen += values_of(await first.poll(0.1))
        assert events == ["assigned 2"]
        await second.subscribe([topic])

        async def poll_until_shared(consumer: AsyncConsumer) -> None:
            while len(await _assignment(first)) != 1 or len(await _assignment(second)) != 1:
                seen.extend(values_of(await consumer.poll(0.1)))

        async with asyncio.timeout(30):
            await asyncio.gather(poll_until_shared(first), poll_until_shared(second))
    assert sorted(int(value or b"") for value in seen) == list(range(40))
    assert "revoked 2" in events or "revoked 1" in events


async def _assignment(consumer: AsyncConsumer) -> set[TopicPartition]:
    found = consumer.assignment()
    return set(await found if asyncio.iscoroutine(found) else found)


@run_async
async def test_transactions(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    async with AsyncProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id=cluster.new_name("tx")
    ) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send(topic, b"kept")
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(topic, b"dropped")
                raise ZeroDivisionError
    read = await asyncio.to_thread(
        read_all, cluster.bootstrap, topic, isolation_level="read_committed"
    )
    assert values_of(read) == [b"kept"]


@run_async
async def test_a_cancelled_send_and_a_cancelled_poll_do_no_harm(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    async with (
        AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer,
        AsyncConsumer(
            bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
        ) as consumer,
    ):
        await consumer.assign([TopicPartition(topic, 0)])
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await consumer.poll(30.0)
        for value in numbers(0, 30):
            with pytest.raises((TimeoutError, asyncio.CancelledError)):
                async with asyncio.timeout(0):
                    await producer.send_and_wait(topic, value)
        await producer.send_and_wait(topic, b"last")
        seen: list[bytes | None] = []
        async with asyncio.timeout(30):
            while b"last" not in seen:
                seen += values_of(await consumer.poll(1.0))
    # A record is either sent once or not at all.
    assert len(set(seen)) == len(seen)


@run_async
async def test_use_after_closing(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    producer = AsyncProducer(bootstrap_servers=cluster.bootstrap)
    await producer.start()
    await producer.close()
    with pytest.raises(KafkaError):
        await producer.send(topic, b"x")
