"""An idempotent producer writes each record once and in order, whatever the network does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from tests.support.fakes.cluster_with_faults import TOPIC, FakeClusterWithFaults
from tests.support.fakes.lone_producer import LoneProducer

SEEDS = st.integers(0, 2**32)


def is_in_order(found: list[bytes], sent: list[bytes]) -> bool:
    """Whether what was found is what was sent, each at most once, perhaps not all of it."""
    remaining = iter(sent)
    return all(value in remaining for value in found)


def send_many(
    producer: LoneProducer, generator: random.Random, count: int
) -> dict[int, list[tuple[bytes, DeliveryFuture]]]:
    sent: dict[int, list[tuple[bytes, DeliveryFuture]]] = {0: [], 1: []}
    for number in range(count):
        partition = generator.randrange(2)
        value = b"%d-%d" % (partition, number)
        sent[partition].append((value, producer.send(partition, value)))
        if generator.random() < 0.5:
            producer.run_steps(generator.randrange(8))
    return sent


@given(seed=SEEDS)
def test_records_are_written_once_and_in_order(seed: int) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(generator, fault_count=generator.randrange(40))
    producer = LoneProducer(cluster, generator)
    sent = send_many(producer, generator, 40)
    producer.flush()
    assert producer.manager.fatal_error is None
    for partition, records in sent.items():
        assert all(future.exception(0) is None for _, future in records)
        found = cluster.partitions[TopicPartition(TOPIC, partition)].values()
        assert found == [value for value, _ in records]


@given(seed=SEEDS)
def test_what_fails_is_at_most_missing(seed: int) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(
        generator,
        fault_count=generator.randrange(60),
        final_errors=(ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        may_be_late=False,
    )
    producer = LoneProducer(cluster, generator)
    sent = send_many(producer, generator, 40)
    if generator.random() < 0.5:
        cluster.now_s += 55
    producer.flush()
    assert producer.manager.fatal_error is None
    for partition, records in sent.items():
        found = cluster.partitions[TopicPartition(TOPIC, partition)].values()
        assert is_in_order(found, [value for value, _ in records])
        acknowledged = [value for value, future in records if future.exception(0) is None]
        assert set(acknowledged) <= set(found)


@given(seed=SEEDS)
def test_it_goes_on_after_batches_were_given_up(seed: int) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(generator, fault_count=30, may_be_late=False)
    producer = LoneProducer(cluster, generator)
    first = send_many(producer, generator, 20)
    cluster.now_s += 61
    producer.flush()
    cluster.fault_count = 0
    second = send_many(producer, generator, 20)
    producer.flush()
    for partition in range(2):
        found = cluster.partitions[TopicPartition(TOPIC, partition)].values()
        assert is_in_order(found, [value for value, _ in first[partition] + second[partition]])
        for _, future in second[partition]:
            assert future.exception(0) is None


def test_lost_acknowledged_records_end_the_producer() -> None:
    generator = random.Random(1)
    cluster = FakeClusterWithFaults(generator)
    producer = LoneProducer(cluster, generator)
    producer.send(0, b"first")
    producer.flush()
    producer.send(0, b"second")
    producer.flush()
    cluster.partitions[TopicPartition(TOPIC, 0)].forget_last_batch()
    future = producer.send(0, b"third")
    waiting = producer.send(1, b"other")
    producer.flush()
    error = future.exception(0)
    assert error is not None
    assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    fatal = producer.manager.fatal_error
    assert fatal is not None
    assert fatal.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert waiting.done()
    with pytest.raises(Exception, match="not usable any more") as caught:
        producer.send(1, b"later")
    assert getattr(caught.value, "code", None) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    sent_count = len(cluster.sent)
    for machine in producer.machines[1:]:
        assert machine.asks(cluster.now_s + 1000) in ((), [])
    assert len(cluster.sent) == sent_count
