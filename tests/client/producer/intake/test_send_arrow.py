"""Arrow batches on a real cluster: what arrives is what was in the columns."""

import asyncio
import time

import pyarrow as pa
import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import NewTopic, require_all
from headwater.client.admin.admin import Admin
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.errors import UnknownTopicError
from headwater.client.partitioner import partition_for_key
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.producer import Producer
from tests.support.brokers.clusters import Cluster

TIMEOUT_S = 30.0
PARTITION_COUNT = 3


def new_topic(cluster: Cluster, **configs: str) -> str:
    name = cluster.new_name()
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        topic = NewTopic(name, partition_count=PARTITION_COUNT, configs=configs)
        require_all(admin.create_topics([topic]))
    return name


def read_all(cluster: Cluster, topic: str, count: int) -> list[ConsumerRecord]:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITION_COUNT)])
        found: list[ConsumerRecord] = []
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(found) < count and time.monotonic() < deadline_s:
            found += consumer.poll(0.5)
        return sorted(found)


def test_rows_arrive_with_all_their_columns(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    count = 3000
    keys = [b"%d" % (number % 50) for number in range(count)]
    values = [b"value %d" % number for number in range(count)]
    rows = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([1_700_000_000_000 + number for number in range(count)]),
        }
    )
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=5000) as producer:
        group = producer.send_arrow(topic, rows)
        begins = group.result(TIMEOUT_S)
        assert group.done()
        assert len(group) == count
        assert group.exception() is None
    assert len(begins) > PARTITION_COUNT
    found = read_all(cluster, topic, count)
    assert sorted(record.value for record in found) == sorted(values)
    for record in found:
        number = int(record.value.split()[1])
        assert record.key == keys[number]
        assert record.timestamp == 1_700_000_000_000 + number
        assert record.partition == partition_for_key(record.key, PARTITION_COUNT)
    for partition in range(PARTITION_COUNT):
        times = [record.timestamp for record in found if record.partition == partition]
        assert times == sorted(times)
    for begin in begins:
        assert (begin.partition, begin.offset, begin.timestamp) in {
            (record.partition, record.offset, record.timestamp) for record in found
        }


def test_rows_without_keys_go_anywhere_or_where_they_are_told(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    rows = pa.table({"value": pa.array([b"x" * 1000] * 2000, pa.binary())})
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=20_000) as producer:
        anywhere = producer.send_arrow(topic, rows).result(TIMEOUT_S)
        there = producer.send_arrow(topic, rows, partition=1).result(TIMEOUT_S)
        with pytest.raises(UnknownTopicError, match="no partition 3"):
            producer.send_arrow(topic, rows, partition=3)
    assert {begin.partition for begin in anywhere} == set(range(PARTITION_COUNT))
    assert {begin.partition for begin in there} == {1}


def test_arrow_and_single_records_keep_their_order(cluster: Cluster) -> None:
    topic = new_topic(cluster)

    async def scenario() -> None:
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            await producer.send(topic, b"first", partition=0)
            rows = pa.record_batch({"value": pa.array([b"second", b"third"], pa.binary())})
            group = await producer.send_arrow(topic, rows, partition=0)
            last = await producer.send(topic, b"last", partition=0)
            assert [begin.offset for begin in await group] == [1]
            assert (await last).offset == 3

    asyncio.run(scenario())
    values = [record.value for record in read_all(cluster, topic, 4)]
    assert values == [b"first", b"second", b"third", b"last"]


def test_rows_that_are_too_large_together_are_split(cluster: Cluster) -> None:
    topic = new_topic(cluster, **{"max.message.bytes": "20000"})
    values = [b"%03d" % number * 500 for number in range(100)]
    rows = pa.record_batch({"value": pa.array(values, pa.binary())})
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_arrow(topic, rows, partition=2).result(TIMEOUT_S)
        assert producer.metrics()["batch-split-total"] > 0
    assert [record.value for record in read_all(cluster, topic, 100)] == values


def test_a_row_that_is_too_large_is_told(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    rows = pa.record_batch({"value": pa.array([b"x" * 2_000_000], pa.binary())})
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        with pytest.raises(KafkaError) as raised:
            producer.send_arrow(topic, rows)
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        nothing = producer.send_arrow(topic, rows.slice(0, 0))
        assert nothing.result(TIMEOUT_S) == []


def test_more_rows_than_fit_into_memory_leave_while_others_are_taken(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    values = [b"%05d" % number * 200 for number in range(5_000)]
    rows = pa.record_batch({"value": pa.array(values, pa.binary())})
    with Producer(bootstrap_servers=cluster.bootstrap, buffer_memory=2_000_000) as producer:
        group = producer.send_arrow(topic, rows, partition=0)
        # Five megabytes were taken, of which two may be on their way.
        assert producer.metrics()["record-send-total"] > 2_000
        group.result(TIMEOUT_S)
    assert [record.value for record in read_all(cluster, topic, 5_000)] == values


def test_a_callback_may_send_rows_too(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    rows = pa.record_batch({"value": pa.array([b"x" * 1000] * 3_000, pa.binary())})
    groups = []
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(
            topic, b"first", on_delivery=lambda *_: groups.append(producer.send_arrow(topic, rows))
        ).result(TIMEOUT_S)
        producer.flush(TIMEOUT_S)
        assert [group.exception() for group in groups] == [None]
    assert len(read_all(cluster, topic, 3_001)) == 3_001
