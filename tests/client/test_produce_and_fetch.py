"""Records through real brokers: what the producer wrote, the fetcher reads."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime, require_all
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import DeliveryError
from headwater.client.fetch_requests import FetchLimits
from headwater.client.isolation import IsolationLevel
from headwater.client.partitioner import partition_for_key
from headwater.client.plain_fetcher import PlainFetcher
from headwater.client.plain_producer import PlainProducer
from headwater.wire.api_keys import ApiKey
from headwater.wire.records import Compression, Record
from tests.support.clusters import Cluster
from tests.support.kafka import require_confluent_kafka

#: Not so old that it would be deleted for its age.
BASE_MS = int(time.time() * 1000) - 60_000

Scenario = Callable[[ClusterConnection], Awaitable[None]]


def run(cluster: Cluster, scenario: Scenario) -> None:
    async def connected() -> None:
        async with ClusterConnection(cluster.bootstrap) as connection:
            await scenario(connection)

    asyncio.run(connected())


async def create(connection: ClusterConnection, topic: NewTopic) -> str:
    """Create a topic and wait until its leaders know that they are."""
    admin = AdminOperations(connection)
    require_all(await admin.create_topics([topic]))
    partitions = [TopicPartition(topic.name, number) for number in range(topic.partition_count)]
    async with asyncio.timeout(20):
        while any(
            isinstance(outcome, KafkaError)
            for outcome in (await admin.list_offsets(dict.fromkeys(partitions, -1))).values()
        ):
            await asyncio.sleep(0.01)
    return topic.name


async def read(
    connection: ClusterConnection,
    topic: str,
    partition_count: int = 1,
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    limits: FetchLimits | None = None,
) -> dict[int, list[Record]]:
    """All records of a topic, by partition."""
    partitions = [TopicPartition(topic, number) for number in range(partition_count)]
    ends = require_all(
        await AdminOperations(connection).list_offsets(
            dict.fromkeys(partitions, OffsetTime.LATEST), isolation_level=isolation_level
        )
    )
    found: dict[int, list[Record]] = {number: [] for number in range(partition_count)}
    async with (
        asyncio.timeout(30),
        PlainFetcher(connection, isolation_level=isolation_level, limits=limits) as fetcher,
    ):
        fetcher.assign(dict.fromkeys(partitions, 0))
        while any(fetcher.positions[key] < ends[key].offset for key in partitions):
            for fetched in await fetcher.fetch(1.0):
                found[fetched.topic_partition.partition] += fetched.records()
    return found


@pytest.mark.parametrize("compression", list(Compression))
def test_every_compression(cluster: Cluster, compression: Compression) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(connection, NewTopic(cluster.new_name(), 1, 1))
        sent = [
            (
                b"key-%d" % i if i % 3 else None,
                b"value " * i if i % 5 else None,
                (("h", b"%d" % i),),
            )
            for i in range(100)
        ]
        async with PlainProducer(
            connection, compression=compression, batch_records_max=30
        ) as producer:
            for number, (key, value, headers) in enumerate(sent):
                await producer.send(
                    topic, value, key=key, headers=headers, timestamp_ms=BASE_MS + number
                )
        records = (await read(connection, topic))[0]
        assert [record.offset for record in records] == list(range(100))
        assert [record.timestamp - BASE_MS for record in records] == list(range(100))
        assert [(r.key, r.value, r.headers) for r in records] == sent

    run(cluster, scenario)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_number_of_acks(cluster: Cluster, acks: int) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(connection, NewTopic(cluster.new_name(), 3, 1))
        async with PlainProducer(connection, acks=acks) as producer:
            for number in range(300):
                await producer.send(topic, b"%d" % number, key=b"key-%d" % (number % 20))
        assert producer.delivered_count == 300
        found = await read(connection, topic, 3)
        for number, records in found.items():
            assert {partition_for_key(record.key or b"", 3) for record in records} <= {number}
        assert sorted(int(r.value or b"") for rs in found.values() for r in rs) == list(range(300))

    run(cluster, scenario)


def test_data_of_any_size_come_through_small_limits(cluster: Cluster) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(connection, NewTopic(cluster.new_name(), 2, 1))
        sizes = [0, 1, 100, 10_000, 900_000, 5, 300_000]
        async with PlainProducer(connection, batch_size_bytes=20_000) as producer:
            for number in range(2):
                for size in sizes:
                    await producer.send(topic, b"x" * size, partition=number)
        limits = FetchLimits(max_bytes=1000, max_partition_bytes=1000)
        for use_limits in (None, limits):
            found = await read(connection, topic, 2, limits=use_limits)
            for records in found.values():
                assert [len(record.value or b"") for record in records] == sizes

    run(cluster, scenario)


def test_batches_that_are_too_large_are_divided_and_records_refused(cluster: Cluster) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(
            connection, NewTopic(cluster.new_name(), 1, 1, configs={"max.message.bytes": "1000"})
        )
        async with PlainProducer(connection) as producer:
            for number in range(100):
                await producer.send(topic, b"%03d" % number * 30)
        records = (await read(connection, topic))[0]
        assert [record.value for record in records] == [b"%03d" % n * 30 for n in range(100)]
        producer = PlainProducer(connection)
        await producer.send(topic, b"x" * 2000)
        with pytest.raises(DeliveryError) as failed:
            await producer.flush()
        assert failed.value.code is ErrorCode.MESSAGE_TOO_LARGE
        await producer.close()

    run(cluster, scenario)


def test_a_compacted_topic_wants_keys_and_says_so(cluster: Cluster) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(
            connection, NewTopic(cluster.new_name(), 1, 1, configs={"cleanup.policy": "compact"})
        )
        producer = PlainProducer(connection)
        await producer.send(topic, b"value")
        with pytest.raises(DeliveryError, match="key") as failed:
            await producer.flush()
        assert failed.value.code is ErrorCode.INVALID_RECORD
        assert producer.failed_count == 1
        await producer.close()

    run(cluster, scenario)


def test_a_waiting_reader_gets_what_comes(cluster: Cluster) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(connection, NewTopic(cluster.new_name(), 2, 1))
        # A reader that waits keeps its connection to itself.
        async with ClusterConnection(cluster.bootstrap) as other, PlainFetcher(other) as fetcher:
            fetcher.assign({TopicPartition(topic, number): 0 for number in range(2)})
            assert await fetcher.fetch(0.05) == []
            async with PlainProducer(connection) as producer:
                for number in range(20):
                    await producer.send(topic, b"%d" % number, partition=number % 2)
                    await producer.flush()
                    async with asyncio.timeout(20):
                        fetched = await fetcher.fetch()
                    [record] = [each for one in fetched for each in one.records()]
                    assert record.value == b"%d" % number

    run(cluster, scenario)


def test_a_topic_that_is_written_to_comes_into_being(cluster: Cluster) -> None:
    async def scenario(connection: ClusterConnection) -> None:
        topic = cluster.new_name("automatic")
        async with PlainProducer(connection) as producer:
            await producer.send(topic, b"first")
        assert [record.value for record in (await read(connection, topic))[0]] == [b"first"]

    run(cluster, scenario)


def test_what_librdkafka_wrote_is_read(cluster: Cluster) -> None:
    confluent = require_confluent_kafka()

    async def scenario(connection: ClusterConnection) -> None:
        topic = await create(connection, NewTopic(cluster.new_name(), 1, 1))
        theirs = confluent.Producer(
            {"bootstrap.servers": cluster.bootstrap, "compression.type": "lz4"}
        )
        for number in range(50):
            theirs.produce(topic, b"%d" % number, key=b"key", headers=[("h", b"v")])
        assert theirs.flush(30) == 0
        records = (await read(connection, topic))[0]
        assert [int(record.value or b"") for record in records] == list(range(50))
        assert {(record.key, record.headers) for record in records} == {(b"key", (("h", b"v"),))}

    run(cluster, scenario)


def test_transactions_that_were_aborted_are_left_out(cluster: Cluster) -> None:
    confluent = require_confluent_kafka()

    async def scenario(connection: ClusterConnection) -> None:
        served = await AdminOperations(connection).api_versions()
        if ApiKey.END_TXN not in served:
            # A broker without transactions offers no part of them that a client could begin with.
            assert not {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT} & served.keys()
            return
        topic = await create(connection, NewTopic(cluster.new_name(), 1, 1))
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
        committed = await read(connection, topic, isolation_level=IsolationLevel.READ_COMMITTED)
        assert [record.value for record in committed[0]] == [
            b"%d-%d" % (number, part) for number in (0, 2, 4) for part in range(3)
        ]
        everything = [record.value for record in (await read(connection, topic))[0]]
        assert everything[-1] == b"open"
        assert b"3-1" in everything
        theirs.abort_transaction()

    run(cluster, scenario)
