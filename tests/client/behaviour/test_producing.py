"""What a user of `Producer` relies on, on Headwater and on Apache Kafka."""

from __future__ import annotations

import random
import threading
import time

import pytest

from headwater import KafkaError, Producer, RecordMetadata
from headwater.base.errors import ErrorCode
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, numbers, read_all, values_of, wait_for


def test_a_record_comes_back_as_it_was_sent(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    headers = [("trace", b"1"), ("trace", None), ("empty", b"")]
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        sent = producer.send(
            topic, b"value", b"key", partition=1, headers=headers, timestamp_ms=1_700_000_000_000
        ).result(30)
        producer.send(topic, None, b"tombstone", partition=1).result(30)
        producer.send(topic, b"", None, partition=1).result(30)
    assert sent == RecordMetadata(topic, 1, 0, 1_700_000_000_000)
    first, tombstone, empty = read_all(cluster.bootstrap, topic, 2)
    assert (first.key, first.value, first.partition, first.offset) == (b"key", b"value", 1, 0)
    assert first.timestamp == 1_700_000_000_000
    assert list(first.headers) == headers
    assert (tombstone.key, tombstone.value) == (b"tombstone", None)
    assert (empty.key, empty.value) == (None, b"")


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_level_of_acknowledgement(cluster: Cluster, acks: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(
        {"acks": acks}, bootstrap_servers=cluster.bootstrap, enable_idempotence=acks == "all"
    ) as producer:
        futures = [producer.send(topic, value) for value in numbers(0, 500)]
        producer.flush(30)
        assert all(future.done() for future in futures)
        offsets = [future.result(0).offset for future in futures]
    # Who asks for no acknowledgement is told no offset.
    assert offsets == ([-1] * 500 if acks == "0" else list(range(500)))
    # And they may be there only some time after they were sent.
    wait_for(lambda: len(read_all(cluster.bootstrap, topic)) == 500, "all are there")
    assert values_of(read_all(cluster.bootstrap, topic)) == numbers(0, 500)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression_shrinks_what_is_stored_and_nothing_else(cluster: Cluster, codec: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    values = [b"%d " % number * 50 for number in range(300)]
    with Producer(
        {"compression.type": codec}, bootstrap_servers=cluster.bootstrap, linger_ms=50
    ) as producer:
        for value in values:
            producer.send(topic, value)
        producer.flush(30)
        rate = producer.metrics()["compression-rate-avg"]
    assert values_of(read_all(cluster.bootstrap, topic)) == values
    assert (rate == pytest.approx(1.0)) if codec == "none" else 0 < rate < 0.9, rate


def test_many_threads_share_a_producer(cluster: Cluster) -> None:
    """Each thread's records keep their order."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=1) as producer:

        def send(name: bytes) -> None:
            for number in range(500):
                producer.send(topic, b"%s-%d" % (name, number))

        threads = [threading.Thread(target=send, args=(name,)) for name in (b"a", b"b", b"c", b"d")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read = values_of(read_all(cluster.bootstrap, topic))
    assert len(read) == 2000
    for name in (b"a", b"b", b"c", b"d"):
        mine = [value for value in read if value is not None and value.startswith(name)]
        assert mine == [b"%s-%d" % (name, number) for number in range(500)]


def test_keys_decide_the_partition(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 4)
    generator = random.Random(3)
    keys = [generator.randbytes(generator.randrange(1, 20)) for _ in range(40)]
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for key in keys * 5:
            producer.send(topic, b"", key)
    places: dict[bytes | None, set[int]] = {}
    for record in read_all(cluster.bootstrap, topic, 4):
        places.setdefault(record.key, set()).add(record.partition)
    assert set(places) == set(keys)
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set.union(*places.values())) == 4


def test_records_without_keys_reach_all_partitions(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 3)
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=200, linger_ms=0) as producer:
        for value in numbers(0, 600):
            producer.send(topic, value * 10)
    assert {record.partition for record in read_all(cluster.bootstrap, topic, 3)} == {0, 1, 2}


def test_callbacks_are_told_offset_and_time(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    told: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    before_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in numbers(0, 20):
            producer.send(topic, value, on_delivery=lambda *outcome: told.append(outcome))
    assert [metadata.offset for metadata, _ in told if metadata is not None] == list(range(20))
    assert {error for _, error in told} == {None}
    stamps = [metadata.timestamp for metadata, _ in told if metadata is not None]
    assert all(before_ms <= stamp <= time.time_ns() // 1_000_000 for stamp in stamps)


def test_a_record_that_is_too_large_fails_alone(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), max_message_bytes="20000")
    with Producer(bootstrap_servers=cluster.bootstrap, max_request_size=50_000) as producer:
        before = producer.send(topic, b"before")
        before.result(30)
        refused = producer.send(topic, b"x" * 30_000)
        error = refused.exception(30)
        assert error is not None
        assert error.code == ErrorCode.MESSAGE_TOO_LARGE
        assert not getattr(error, "retriable", False)
        # This one does not even leave.
        with pytest.raises(KafkaError) as large:
            producer.send(topic, b"x" * 60_000).result(30)
        assert large.value.code == ErrorCode.MESSAGE_TOO_LARGE
        after = producer.send(topic, b"after")
        assert after.result(30).offset == 1
    assert values_of(read_all(cluster.bootstrap, topic)) == [b"before", b"after"]


def test_a_topic_that_does_not_exist(cluster: Cluster) -> None:
    """Where topics are not created on demand, waiting for one ends with its name."""
    name = "no/such/name"
    with Producer(bootstrap_servers=cluster.bootstrap, max_block_ms=2_000) as producer:
        with pytest.raises(KafkaError) as refused:
            producer.send(name, b"x").result(30)
        assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_partitions_that_do_not_exist(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    with Producer(bootstrap_servers=cluster.bootstrap, max_block_ms=1_000) as producer:
        assert [each.partition for each in producer.partitions_for(topic)] == [0, 1]
        with pytest.raises((KafkaError, ValueError)):
            producer.send(topic, b"x", partition=2).result(30)
        assert producer.send(topic, b"y", partition=1).result(30).offset == 0


def test_close_delivers_what_waits(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    producer = Producer(
        bootstrap_servers=cluster.bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000
    )
    future = producer.send(topic, b"late")
    assert not future.done()
    producer.close(30)
    assert future.result(0).offset == 0
    with pytest.raises(KafkaError):
        producer.send(topic, b"after")


def test_metrics_have_kafkas_names(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in numbers(0, 100):
            producer.send(topic, value)
        producer.flush(30)
        metrics = producer.metrics()

        def latency_ms() -> float:
            producer.send(topic, b"again").result(30)
            return producer.metrics()["request-latency-avg"]

        # A loop's clock may count whole milliseconds, and most answers come within one.
        wait_for(lambda: latency_ms() > 0, "a latency")
    assert metrics["record-send-total"] == 100
    assert metrics["record-error-total"] == 0
    assert metrics["record-send-rate"] > 0
    for name in ("batch-size-avg", "records-per-request-avg"):
        assert metrics[name] > 0, name
    assert "buffer-available-bytes" in metrics
