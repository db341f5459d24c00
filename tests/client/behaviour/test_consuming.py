"""What a user of `Consumer` without a group relies on, on Headwater and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater import Admin, Consumer, KafkaError, Producer, TopicPartition
from headwater.client.admin import require_all
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import (
    create_topic,
    numbers,
    partitions_of,
    take,
    values_of,
    wait_for,
)

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """Two partitions, a hundred records in each, ten seconds apart."""
    name = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=300) as producer:
        for number, value in enumerate(numbers(0, 100)):
            for partition in (0, 1):
                stamp_ms = START_MS + 10_000 * number
                producer.send(name, value, partition=partition, timestamp_ms=stamp_ms)
    return name


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[Consumer]:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as made:
        yield made


def test_both_partitions_are_read_in_order(consumer: Consumer, topic: str) -> None:
    consumer.assign(partitions_of(topic, 2))
    assert set(consumer.assignment()) == set(partitions_of(topic, 2))
    records = take(consumer, 200)
    for partition in (0, 1):
        mine = [record for record in records if record.partition == partition]
        assert [record.offset for record in mine] == list(range(100))
        assert values_of(mine) == numbers(0, 100)
    assert consumer.position(TopicPartition(topic, 0)) == 100
    assert consumer.lag() == dict.fromkeys(partitions_of(topic, 2), 0)


def test_a_poll_returns_no_more_than_it_is_asked_for(consumer: Consumer, topic: str) -> None:
    consumer.assign(partitions_of(topic, 2))
    sizes = []
    seen = 0
    while seen < 200:
        records = consumer.poll(5.0, max_records=7)
        sizes.append(len(records))
        seen += len(records)
        positions = sum(consumer.position(each) for each in partitions_of(topic, 2))
        assert positions == seen
    assert max(sizes) <= 7
    assert consumer.poll(0.05) == []


def test_iteration(consumer: Consumer, topic: str) -> None:
    consumer.assign([TopicPartition(topic, 0)])
    seen = []
    for record in consumer:
        seen.append(record.value)
        if len(seen) == 100:
            break
    assert seen == numbers(0, 100)
    # What was not looped over is still to come.
    consumer.seek(TopicPartition(topic, 0), 97)
    assert values_of(take(consumer, 3)) == numbers(97, 100)


def test_seeking(consumer: Consumer, topic: str) -> None:
    [first, second] = partitions_of(topic, 2)
    consumer.assign([first])
    consumer.seek(first, 90)
    assert consumer.position(first) == 90
    assert values_of(take(consumer, 10)) == numbers(90, 100)
    consumer.seek_to_beginning([first])
    assert consumer.position(first) == 0
    assert values_of(take(consumer, 100)) == numbers(0, 100)
    consumer.seek_to_end([first])
    assert consumer.position(first) == 100
    with pytest.raises(KafkaError):
        consumer.seek(second, 0)


def test_a_seek_in_the_midst_of_a_batch_drops_what_was_fetched(
    consumer: Consumer, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    assert values_of(consumer.poll(10.0, max_records=5)) == numbers(0, 5)
    consumer.seek(partition, 50)
    assert values_of(consumer.poll(10.0, max_records=5)) == numbers(50, 55)
    consumer.seek(partition, 3)
    assert values_of(consumer.poll(10.0, max_records=5)) == numbers(3, 8)


def test_times_lead_to_offsets(consumer: Consumer, topic: str) -> None:
    [first, second] = partitions_of(topic, 2)
    found = consumer.offsets_for_times({first: START_MS + 25_000, second: START_MS + 10_000_000})
    at_25_s = found[first]
    assert found[second] is None
    assert at_25_s is not None
    assert (at_25_s.offset, at_25_s.timestamp) == (3, START_MS + 30_000)
    assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
    assert consumer.end_offsets([first, second]) == {first: 100, second: 100}


def test_a_paused_partition_waits(consumer: Consumer, topic: str) -> None:
    [first, second] = partitions_of(topic, 2)
    consumer.assign([first, second])
    consumer.poll(10.0, max_records=2)
    consumer.pause([first])
    assert set(consumer.paused()) == {first}
    before = consumer.position(first)
    seen: list[int] = []
    while consumer.position(second) < 100:
        seen += [record.partition for record in consumer.poll(5.0)]
    assert set(seen) <= {1}
    assert consumer.position(first) == before
    assert consumer.poll(0.05) == []
    consumer.resume([first])
    assert consumer.paused() == set() or not consumer.paused()
    assert len(take(consumer, 100 - before)) == 100 - before


@pytest.mark.parametrize(("reset", "position"), [("earliest", 0), ("latest", 100)])
def test_where_reading_starts_without_a_position(
    cluster: Cluster, topic: str, reset: str, position: int
) -> None:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset=reset) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == position


def test_without_a_reset_the_user_decides(cluster: Cluster, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with Consumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="none", group_id=cluster.new_name()
    ) as consumer:
        consumer.assign([partition])
        with pytest.raises(KafkaError) as missing:
            take(consumer, 1)
        assert missing.type.__name__ == "NoOffsetForPartitionError"
        consumer.seek(partition, 98)
        assert values_of(take(consumer, 2)) == numbers(98, 100)


@pytest.mark.parametrize("reset", ["earliest", "none"])
def test_records_that_were_deleted_meanwhile(cluster: Cluster, reset: str) -> None:
    """The offset lies before the log's start: reset, or the user is told."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in numbers(0, 50):
            producer.send(topic, value).result(30)
    # Before the consumer is there, because it fetches ahead as soon as it has a position.
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        require_all(admin.delete_records({partition: 40}))
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset=reset,
        group_id=cluster.new_name("group"),
    ) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        if reset == "none":
            with pytest.raises(KafkaError) as lost:
                take(consumer, 10)
            assert lost.value.code.name == "OFFSET_OUT_OF_RANGE"
            consumer.seek(partition, 40)
        assert values_of(take(consumer, 10)) == numbers(40, 50)
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 40}


def test_records_that_come_while_it_waits(cluster: Cluster, consumer: Consumer) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    consumer.assign([TopicPartition(topic, 0)])
    assert consumer.poll(0.1) == []
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        for number in range(5):
            producer.send(topic, b"%d" % number).result(30)
            [record] = take(consumer, 1)
            assert record.value == b"%d" % number


def test_records_larger_than_a_fetch(cluster: Cluster) -> None:
    """A batch that is larger than what a fetch may hold still comes, alone."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    values = [bytes([65 + number]) * 100_000 for number in range(5)]
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=1) as producer:
        for value in values:
            producer.send(topic, value)
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_bytes=1_000,
        max_partition_fetch_bytes=1_000,
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert values_of(take(consumer, 5)) == values


def test_topics_and_partitions(cluster: Cluster, consumer: Consumer, topic: str) -> None:
    assert topic in consumer.topics()
    assert [each.partition for each in consumer.partitions_for(topic)] == [0, 1]


def test_deserializers_and_serializers(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(
        bootstrap_servers=cluster.bootstrap,
        key_serializer=lambda key: key.encode(),
        value_serializer=lambda value: str(value).encode(),
    ) as producer:
        for number in range(10):
            producer.send(topic, number, f"key-{number}")
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        key_deserializer=lambda key: key.decode(),
        value_deserializer=int,
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = take(consumer, 10)
    assert [(record.key, record.value) for record in records] == [
        (f"key-{number}", number) for number in range(10)
    ]


def test_wakeup_ends_a_poll(consumer: Consumer, topic: str) -> None:
    import threading

    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_end([TopicPartition(topic, 0)])
    waker = threading.Timer(0.3, consumer.wakeup)
    waker.start()
    with pytest.raises(KafkaError):
        consumer.poll(30.0)
    waker.join()
    # And does no harm to the next.
    consumer.seek(TopicPartition(topic, 0), 99)
    assert values_of(take(consumer, 1)) == [b"99"]


def test_metrics_have_kafkas_names(consumer: Consumer, topic: str) -> None:
    consumer.assign(partitions_of(topic, 2))
    take(consumer, 200)
    metrics = consumer.metrics()
    assert metrics["records-consumed-total"] == 200
    assert metrics["bytes-consumed-total"] > 0
    wait_for(lambda: consumer.metrics()["records-lag-max"] == 0, "nothing is left to read")
