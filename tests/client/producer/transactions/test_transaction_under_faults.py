"""Transactions are all or nothing, whatever the network and the coordinators do."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.transactions.states import State
from tests.support.fakes.cluster_with_faults import TOPIC, FakeClusterWithFaults
from tests.support.fakes.lone_producer import LoneProducer

SEEDS = st.integers(0, 2**32)
GROUP = GroupIdentity("readers")
SOURCE = TopicPartition("source", 0)


class Ledger:
    """What the user of a producer knows: which transactions were committed, with what."""

    def __init__(self) -> None:
        self.committed: dict[int, list[bytes]] = {0: [], 1: []}
        self.offset: int | None = None
        self.commit_count = 0


def one_transaction(
    producer: LoneProducer, generator: random.Random, number: int, ledger: Ledger
) -> None:
    """Begin one, send, and end it one way or the other; errors are met as a user would."""
    operations = producer.manager.operations
    operations.begin()
    sent: dict[int, list[bytes]] = {0: [], 1: []}
    futures: list[DeliveryFuture] = []
    offset: int | None = None
    try:
        for index in range(generator.randrange(8)):
            partition = generator.randrange(2)
            value = b"%d:%d" % (number, index)
            sent[partition].append(value)
            futures.append(producer.send(partition, value))
            producer.run_steps(generator.randrange(6))
        if generator.random() < 0.4:
            offset = number
            offsets = {SOURCE: OffsetAndMetadata(number)}
            producer.finish(operations.send_offsets(offsets, GROUP))
        if generator.random() < 0.7:
            producer.finish(operations.commit())
        else:
            producer.finish(operations.abort())
            return
    except KafkaError:
        if producer.manager.fatal_error is not None:
            raise
        assert operations.state is State.ABORTABLE_ERROR
        producer.finish(operations.abort())
        assert all(future.done() for future in futures)
        return
    assert all(future.exception(0) is None for future in futures)
    for partition, values in sent.items():
        ledger.committed[partition] += values
    if offset is not None:
        ledger.offset = offset
    if futures or offset is not None:
        ledger.commit_count += 1


def must_commit(producer: LoneProducer, ledger: Ledger) -> None:
    """Where there are no faults any more, a transaction succeeds."""
    operations = producer.manager.operations
    operations.begin()
    for partition in range(2):
        producer.send(partition, b"last")
        ledger.committed[partition].append(b"last")
    began_s = producer.cluster.now_s
    producer.finish(operations.commit())
    assert producer.cluster.now_s - began_s < 20
    ledger.commit_count += 1


@given(seed=SEEDS, is_version_2=st.booleans())
def test_committed_is_what_was_committed(seed: int, is_version_2: bool) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(
        generator,
        is_version_2=is_version_2,
        fault_count=generator.randrange(60),
        final_errors=(ErrorCode.INVALID_RECORD, ErrorCode.TRANSACTION_ABORTABLE),
    )
    producer = LoneProducer(cluster, generator, transactional_id="payments")
    producer.finish(producer.manager.operations.initialize())
    ledger = Ledger()
    for number in range(8):
        one_transaction(producer, generator, number, ledger)
        if generator.random() < 0.1:
            cluster.now_s += 61
    cluster.fault_count = 0
    must_commit(producer, ledger)
    for partition, values in ledger.committed.items():
        found = cluster.partitions[TopicPartition(TOPIC, partition)].committed_values()
        assert found == values
    assert cluster.coordinator.committed_offsets.get(SOURCE) == ledger.offset
    assert cluster.coordinator.commit_count == ledger.commit_count


@given(seed=SEEDS, is_version_2=st.booleans())
def test_a_fenced_producer_sends_nothing_more(seed: int, is_version_2: bool) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(generator, is_version_2=is_version_2, fault_count=5)
    producer = LoneProducer(cluster, generator, transactional_id="payments")
    producer.finish(producer.manager.operations.initialize())
    ledger = Ledger()
    one_transaction(producer, generator, 0, ledger)
    newer = LoneProducer(cluster, generator, transactional_id="payments")
    newer.finish(newer.manager.operations.initialize())
    with pytest.raises(KafkaError) as caught:
        for number in range(1, 50):
            one_transaction(producer, generator, number, ledger)
    assert caught.value.code is ErrorCode.PRODUCER_FENCED
    assert producer.manager.fatal_error is not None
    producer.flush()
    for machine in producer.machines[1:]:
        assert not machine.asks(cluster.now_s + 1000)
    operations = producer.manager.operations
    for operation in (operations.begin, operations.commit, operations.abort, operations.prepare):
        with pytest.raises(KafkaError, match="not usable any more"):
            operation()
    # Nothing of the old one's is in the way of the newer one.
    one_transaction(newer, generator, 99, ledger)
    for partition, values in ledger.committed.items():
        found = cluster.partitions[TopicPartition(TOPIC, partition)].committed_values()
        assert found == values


@given(seed=SEEDS)
def test_a_cluster_that_moves_to_the_second_version(seed: int) -> None:
    generator = random.Random(seed)
    cluster = FakeClusterWithFaults(generator, is_version_2=False, fault_count=20)
    producer = LoneProducer(cluster, generator, transactional_id="payments")
    producer.finish(producer.manager.operations.initialize())
    ledger = Ledger()
    for number in range(6):
        if number == 3:
            # The features change while a transaction of the first version is open, of which the
            # coordinator keeps the version until its end.
            epoch = producer.manager.identity.epoch
            producer.moves_to_version_2 = True
        one_transaction(producer, generator, number, ledger)
        if number == 3:
            assert producer.manager.identity.epoch > epoch
            assert producer.manager.produce_version_max is None
            cluster.coordinator.is_version_2 = True
    for partition, values in ledger.committed.items():
        found = cluster.partitions[TopicPartition(TOPIC, partition)].committed_values()
        assert found == values
