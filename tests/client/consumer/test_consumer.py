"""`Consumer` on a running cluster: what it reads, from where, and what it tells."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.errors import (
    ConcurrentUseError,
    InvalidOffsetError,
    NoGroupError,
    NoOffsetForPartitionError,
    SubscriptionError,
    WakeupError,
)
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.producer.producer import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.brokers.clusters import Cluster
from tests.support.values.filled_topics import delete_before, fill, new_topic, numbers, read


def reader(cluster: Cluster, topic: str, *partitions: int, **settings: Any) -> Consumer:
    """A consumer without a group that has been assigned partitions, by default the first."""
    settings = {"auto_offset_reset": "earliest"} | settings
    consumer = Consumer(bootstrap_servers=cluster.bootstrap, **settings)
    consumer.assign([TopicPartition(topic, number) for number in partitions or (0,)])
    return consumer


def test_assigned_partitions_are_read_in_order(cluster: Cluster) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 1200)
    fill(cluster, topic, 5, partition=1, start=5000)
    first = TopicPartition(topic, 0)
    with reader(cluster, topic, 0, 1) as consumer:
        assert consumer.assignment() == {first, TopicPartition(topic, 1)}
        records = read(consumer, 1205)
        assert numbers([r for r in records if r.partition == 0]) == list(range(1200))
        assert numbers([r for r in records if r.partition == 1]) == list(range(5000, 5005))
        assert [r.offset for r in records if r.partition == 0] == list(range(1200))
        assert records[0].timestamp % 1000 == 0
        assert consumer.position(first) == 1200
        assert consumer.lag() == {first: 0, TopicPartition(topic, 1): 0}
        figures = consumer.metrics()
        assert figures["records-consumed-total"] == 1205
        assert figures["records-lag-max"] == 0
        assert figures["fetch-total"] >= 1
        assert figures["bytes-consumed-total"] > 1205


def test_a_poll_returns_no_more_than_asked_for(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 50)
    with reader(cluster, topic, max_poll_records=7) as consumer:
        assert len(consumer.poll(10.0)) == 7
        assert len(consumer.poll(10.0, max_records=3)) == 3
        assert consumer.position(TopicPartition(topic, 0)) == 10
        assert consumer.lag() == {TopicPartition(topic, 0): 40}


def test_seeking(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 100)
    partition = TopicPartition(topic, 0)
    with reader(cluster, topic) as consumer:
        consumer.seek(partition, 42)
        assert consumer.position(partition) == 42
        assert numbers(consumer.poll(10.0, max_records=2)) == [42, 43]
        consumer.seek(partition, 7)
        assert numbers(consumer.poll(10.0, max_records=2)) == [7, 8]
        consumer.seek_to_end()
        assert consumer.position(partition) == 100
        assert consumer.poll(0.2) == []
        consumer.seek_to_beginning([partition])
        assert numbers(consumer.poll(10.0, max_records=1)) == [0]
        with pytest.raises(ValueError, match="-1"):
            consumer.seek(partition, -1)
        with pytest.raises(KafkaError, match="not assigned"):
            consumer.seek(TopicPartition(topic, 9), 0)


def test_offsets_by_time_and_at_the_ends(cluster: Cluster) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 10)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with reader(cluster, topic) as consumer:
        found = consumer.offsets_for_times({first: 4500, second: 1})
        assert [place and place[:2] for place in (found[first], found[second])] == [
            (4, 5000),
            None,
        ]
        assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert consumer.end_offsets([first, second]) == {first: 10, second: 0}
        assert len(consumer.partitions_for(topic)) == 2
        assert topic in consumer.topics()
        with pytest.raises(KafkaError) as caught:
            consumer.partitions_for(cluster.new_name("nowhere"))
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_paused_partitions_wait(cluster: Cluster) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 5)
    fill(cluster, topic, 5, partition=1)
    first = TopicPartition(topic, 0)
    with reader(cluster, topic, 0, 1) as consumer:
        consumer.pause([first])
        assert consumer.paused() == {first}
        assert {record.partition for record in read(consumer, 5)} == {1}
        assert consumer.poll(0.1) == []
        consumer.resume([first])
        assert numbers(read(consumer, 5)) == [0, 1, 2, 3, 4]


def test_iterating_loses_nothing_when_it_stops_in_the_middle(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 100)
    partition = TopicPartition(topic, 0)
    seen = []
    with reader(cluster, topic) as consumer:
        for record in consumer:
            seen.append(int(record.value))
            if len(seen) == 10:
                break
        assert consumer.position(partition) == 10
        seen += numbers(consumer.poll(1.0, max_records=5))
        for record in consumer:
            seen.append(int(record.value))
            if record.offset == 30:
                consumer.seek(partition, 60)
            if record.offset == 65:
                consumer.pause([partition])
                break
        assert consumer.position(partition) == 66
        assert consumer.poll(0.2) == []
        consumer.resume([partition])
        seen += numbers(read(consumer, 34))
    assert seen == [*range(31), *range(60, 100)]


def test_arrow_batches_hold_the_same_records(cluster: Cluster) -> None:
    pytest.importorskip("pyarrow")
    topic = new_topic(cluster)
    fill(cluster, topic, 300)
    with reader(cluster, topic) as consumer:
        assert numbers(consumer.poll(10.0, max_records=20)) == list(range(20))
        values: list[bytes] = []
        offsets: list[int] = []
        while len(values) < 280:
            batch = consumer.poll_arrow(5.0, max_records=150)
            assert 0 < batch.num_rows <= 150
            values += batch.column("value").to_pylist()
            offsets += batch.column("offset").to_pylist()
        assert offsets == list(range(20, 300))
        assert values == [b"%d" % offset for offset in offsets]
        assert consumer.position(TopicPartition(topic, 0)) == 300
        assert consumer.poll_arrow(0.0).num_rows == 0


def test_a_schema_chooses_the_columns_of_arrow_batches(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 30)
    schema = pa.schema([("value", pa.binary_view()), ("offset", pa.int64())])
    with reader(cluster, topic) as consumer:
        batches: list[pa.RecordBatch] = []
        while sum(batch.num_rows for batch in batches) < 30:
            # Nothing is lost by a schema that cannot be had.
            with pytest.raises(ValueError, match="no column 'ofset'; the nearest is 'offset'"):
                consumer.poll_arrow(5.0, schema=pa.schema([("ofset", pa.int64())]))
            batches.append(consumer.poll_arrow(5.0, max_records=20, schema=schema))
            assert batches[-1].num_rows
        assert consumer.poll_arrow(0.0, schema=schema).schema == schema
    table = pa.Table.from_batches(batches, schema)
    assert table.to_pylist() == [{"value": b"%d" % n, "offset": n} for n in range(30)]


def test_aborted_transactions_are_left_out_and_open_ones_waited_for(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    partition = TopicPartition(topic, 0)
    fill(cluster, topic, 1)
    with (
        Producer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer,
        reader(cluster, topic) as careless,
        reader(cluster, topic, isolation_level="read_committed") as careful,
    ):
        producer.init_transactions()
        for number, is_good in ((1, False), (2, True)):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            producer.flush()
            if is_good:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"3", partition=0)
        producer.flush()
        # Offsets: 0, 1 (aborted), its marker, 3, its marker, 5 (open).
        assert numbers(read(careless, 4)) == [0, 1, 2, 3]
        assert numbers(read(careful, 2)) == [0, 2]
        assert careful.poll(0.2) == []
        assert careful.end_offsets([partition]) == {partition: 5}
        assert careless.end_offsets([partition]) == {partition: 6}
        assert careful.position(partition) == 5
        assert careful.lag() == {partition: 0}
        careful.seek(partition, 3)
        careless.seek(partition, 3)
        careful.poll(5.0, max_records=0)
        assert careful.lag() == {partition: 2}
        assert careless.lag() == {partition: 3}
        producer.commit_transaction()
        assert numbers(read(careful, 2)) == [2, 3]


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("earliest", [6, 7, 8, 9]), ("latest", []), ("by_duration:PT1H", []), ("none", None)],
)
def test_deleted_records(cluster: Cluster, reset: str, expected: list[int] | None) -> None:
    topic = new_topic(cluster)
    partition = TopicPartition(topic, 0)
    fill(cluster, topic, 10)
    delete_before(cluster, partition, 6)
    with reader(cluster, topic, auto_offset_reset=reset) as consumer:
        consumer.seek(partition, 2)
        if expected is None:
            with pytest.raises(InvalidOffsetError) as caught:
                for _ in range(20):
                    consumer.poll(1.0)
            assert caught.value.topic_partition == partition
            consumer.seek(partition, 8)
            assert numbers(read(consumer, 2)) == [8, 9]
        elif expected:
            assert numbers(read(consumer, len(expected))) == expected
        else:
            while consumer.position(partition) == 2:
                assert consumer.poll(0.1) == []
            fill(cluster, topic, 1, start=10)
            assert numbers(read(consumer, 1)) == [10]


def test_without_a_reset_a_beginning_must_be_chosen(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 3)
    with reader(cluster, topic, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffsetForPartitionError):
            consumer.poll(20.0)
        consumer.seek(TopicPartition(topic, 0), 1)
        assert numbers(read(consumer, 2)) == [1, 2]


def test_many_partitions(cluster: Cluster) -> None:
    count = 40
    topic = new_topic(cluster, count)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(count * 20):
            producer.send(topic, b"%d" % number, partition=number % count)
    with reader(cluster, topic, *range(count), max_partition_fetch_bytes=100) as consumer:
        records = read(consumer, count * 20)
        for partition in range(count):
            mine = [record for record in records if record.partition == partition]
            assert numbers(mine) == list(range(partition, count * 20, count))
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send(topic, b"-1", partition=7)
        assert numbers(read(consumer, 1)) == [-1]
        assert set(consumer.lag().values()) == {0}


def test_deserializers_and_interceptors(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b'{"a": 1}', b"key", headers=[("h", b"1"), ("n", None)])
        producer.send(topic, None, b"gone")

    class Doubling:
        def on_consume(self, records: list[Any]) -> list[Any]:
            return records + records

    with (
        Consumer(
            {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"},
            key_deserializer=bytes.decode,
            value_deserializer=json.loads,
            interceptors=[object(), Doubling()],
        ) as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        records = consumer.poll(10.0)
        assert [(record.key, record.value) for record in records] == [
            ("key", {"a": 1}),
            ("gone", None),
        ] * 2
        assert records[0].headers == (("h", b"1"), ("n", None))


def test_waking_up_and_closing(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    consumer = reader(cluster, topic)
    consumer.poll(0.0)
    waker = threading.Timer(0.2, consumer.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        consumer.poll(30.0)
    waker.join()
    outcomes: list[object] = []

    def use_it_too() -> None:
        try:
            consumer.poll(0.0)
        except KafkaError as error:
            outcomes.append(error)
        consumer.wakeup()

    other = threading.Timer(0.2, use_it_too)
    other.start()
    with pytest.raises(WakeupError):
        consumer.poll(30.0)
    other.join()
    assert [type(outcome) for outcome in outcomes] == [ConcurrentUseError]
    consumer.close()
    consumer.close()
    with pytest.raises(ClientClosedError):
        consumer.poll()
    with pytest.raises(ClientClosedError):
        consumer.position(TopicPartition(topic, 0))


def test_what_needs_a_group_says_so(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    with reader(cluster, topic) as consumer:
        with pytest.raises(NoGroupError, match=r"group\.id"):
            consumer.commit()
        with pytest.raises(NoGroupError, match=r"group\.id"):
            consumer.committed([TopicPartition(topic, 0)])
        with pytest.raises(NoGroupError, match=r"group\.id"):
            consumer.subscribe([topic])
        with pytest.raises(NoGroupError):
            consumer.group_identity()


def test_ways_of_reading_are_not_mixed(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    with reader(cluster, topic, group_id=topic) as consumer:
        with pytest.raises(SubscriptionError, match="assigned"):
            consumer.subscribe([topic])
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        consumer.subscribe([topic])
        assert consumer.subscription() == {topic}


def test_a_topic_may_come_later(cluster: Cluster) -> None:
    name = cluster.new_name("later")
    with reader(cluster, name, allow_auto_create_topics=False) as consumer:
        assert consumer.poll(0.3) == []
        with pytest.raises(DeadlineError):
            consumer.position(TopicPartition(name, 0), timeout_s=0.1)
        fill(cluster, name, 2)
        assert numbers(read(consumer, 2)) == [0, 1]


def test_nobody_at_the_address() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1", auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert consumer.poll(0.2) == []
        with pytest.raises(DeadlineError):
            consumer.topics(timeout_s=0.2)


def test_a_broker_that_goes_and_comes_back(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker:
        cluster = Cluster("headwater", broker.bootstrap, 0)
        topic = new_topic(cluster)
        fill(cluster, topic, 10)
        with reader(cluster, topic, group_id=topic) as consumer:
            assert numbers(read(consumer, 10)) == list(range(10))
            broker.stop()
            assert consumer.poll(0.3) == []
            broker.start()
            fill(cluster, topic, 5, start=10)
            assert numbers(read(consumer, 5)) == list(range(10, 15))
            consumer.commit()
            assert consumer.position(TopicPartition(topic, 0)) == 15
