"""Records through real brokers: what `AsyncProducer` wrote, `AsyncConsumer` reads."""

import asyncio
import time
from collections.abc import Mapping

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import NewTopic, require_all
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.partitioner import partition_for_key
from headwater.client.producer.async_producer import AsyncProducer
from headwater.wire.api_keys import ApiKey
from headwater.wire.records import Compression
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.kafka.node import require_confluent_kafka

#: Not so old that it would be deleted for its age.
BASE_MS = int(time.time() * 1000) - 60_000


def producer_on(cluster: Cluster, settings: Mapping[str, object] | None = None) -> AsyncProducer:
    return AsyncProducer(settings, bootstrap_servers=cluster.bootstrap)


async def create(
    cluster: Cluster, partition_count: int = 1, configs: Mapping[str, str] | None = None
) -> str:
    """Create a topic and wait until its leaders know that they are."""
    name = cluster.new_name()
    partitions = [TopicPartition(name, number) for number in range(partition_count)]
    async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin, asyncio.timeout(20):
        require_all(
            await admin.create_topics([NewTopic(name, partition_count, 1, configs=configs or {})])
        )
        while any(
            isinstance(outcome, KafkaError)
            for outcome in (await admin.list_offsets(dict.fromkeys(partitions, -1))).values()
        ):
            await asyncio.sleep(0.01)
    return name


async def read(
    cluster: Cluster,
    topic: str,
    partition_count: int = 1,
    settings: Mapping[str, object] | None = None,
) -> dict[int, list[ConsumerRecord]]:
    """All records of a topic, by partition."""
    partitions = [TopicPartition(topic, number) for number in range(partition_count)]
    found: dict[int, list[ConsumerRecord]] = {number: [] for number in range(partition_count)}
    async with (
        asyncio.timeout(30),
        AsyncConsumer(settings, bootstrap_servers=cluster.bootstrap) as consumer,
    ):
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(each) < ends[each] for each in partitions]):
            for record in await consumer.poll(1.0):
                found[record.partition].append(record)
    return found


@pytest.mark.parametrize("compression", list(Compression))
@run_async
async def test_every_compression(cluster: Cluster, compression: Compression) -> None:
    topic = await create(cluster)
    sent = [
        (
            b"key-%d" % i if i % 3 else None,
            b"value " * i if i % 5 else None,
            (("h", b"%d" % i),),
        )
        for i in range(100)
    ]
    settings = {"compression.type": compression.name.lower(), "batch.size": 5000}
    async with producer_on(cluster, settings) as producer:
        for number, (key, value, headers) in enumerate(sent):
            await producer.send(topic, value, key, headers=headers, timestamp_ms=BASE_MS + number)
    records = (await read(cluster, topic))[0]
    assert [record.offset for record in records] == list(range(100))
    assert [record.timestamp - BASE_MS for record in records] == list(range(100))
    assert [(r.key, r.value, r.headers) for r in records] == sent


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@run_async
async def test_every_number_of_acks(cluster: Cluster, acks: str) -> None:
    topic = await create(cluster, 3)
    async with producer_on(cluster, {"acks": acks}) as producer:
        futures = [
            await producer.send(topic, b"%d" % number, b"key-%d" % (number % 20))
            for number in range(300)
        ]
    written = [await future for future in futures]
    assert {metadata.offset == -1 for metadata in written} == {acks == "0"}
    found = await read(cluster, topic, 3)
    for number, records in found.items():
        assert {partition_for_key(record.key, 3) for record in records} <= {number}
    assert sorted(int(r.value) for rs in found.values() for r in rs) == list(range(300))


@run_async
async def test_data_of_any_size_come_through_small_limits(cluster: Cluster) -> None:
    topic = await create(cluster, 2)
    sizes = [0, 1, 100, 10_000, 900_000, 5, 300_000]
    async with producer_on(cluster) as producer:
        for number in range(2):
            for size in sizes:
                await producer.send(topic, b"x" * size, partition=number)
    limits = {"fetch.max.bytes": 1000, "max.partition.fetch.bytes": 1000}
    for settings in (None, limits):
        found = await read(cluster, topic, 2, settings)
        for records in found.values():
            assert [len(record.value) for record in records] == sizes


@run_async
async def test_a_compacted_topic_wants_keys_and_says_so(cluster: Cluster) -> None:
    topic = await create(cluster, configs={"cleanup.policy": "compact"})
    async with producer_on(cluster) as producer:
        with pytest.raises(KafkaError) as failed:
            await producer.send_and_wait(topic, b"value")
        assert failed.value.code is ErrorCode.INVALID_RECORD
        # The broker's own sentence, and not only what the code means.
        assert "key" in str(failed.value)


@run_async
async def test_a_waiting_reader_gets_what_comes(cluster: Cluster) -> None:
    topic = await create(cluster, 2)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    async with (
        AsyncConsumer(bootstrap_servers=cluster.bootstrap) as consumer,
        producer_on(cluster) as producer,
        asyncio.timeout(60),
    ):
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        assert await consumer.poll(0.05) == []
        for number in range(20):
            await producer.send_and_wait(topic, b"%d" % number, partition=number % 2)
            [record] = await consumer.poll(20.0)
            assert (record.partition, record.value) == (number % 2, b"%d" % number)


@run_async
async def test_transactions_that_were_aborted_are_left_out(cluster: Cluster) -> None:
    confluent = require_confluent_kafka()
    async with AsyncAdmin(bootstrap_servers=cluster.bootstrap) as admin:
        served = await admin.api_versions()
    if ApiKey.END_TXN not in served:
        # A broker without transactions offers no part of them that a client could begin with.
        assert not {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT} & served.keys()
        return
    topic = await create(cluster)
    theirs = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": cluster.new_name("tx")}
    )
    theirs.init_transactions()
    for number in range(6):
        theirs.begin_transaction()
        for part in range(3):
            theirs.produce(topic, b"%d-%d" % (number, part))
        # What was not sent before an abort never is.
        assert theirs.flush(30) == 0
        if number % 2:
            theirs.abort_transaction()
        else:
            theirs.commit_transaction()
    theirs.begin_transaction()
    theirs.produce(topic, b"open")
    theirs.flush(30)
    committed = await read(cluster, topic, settings={"isolation.level": "read_committed"})
    assert [record.value for record in committed[0]] == [
        b"%d-%d" % (number, part) for number in (0, 2, 4) for part in range(3)
    ]
    everything = [record.value for record in (await read(cluster, topic))[0]]
    assert everything[-1] == b"open"
    assert b"3-1" in everything
    theirs.abort_transaction()
