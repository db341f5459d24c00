"""Transactions as a user has them, on Headwater and on Apache Kafka."""

from __future__ import annotations

from typing import Final

import pytest

from headwater import Consumer, ConsumerRecord, KafkaError, Producer, TopicPartition
from headwater.base.errors import ErrorCode
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, numbers, read_all, take, values_of

COMMITTED: Final = "read_committed"


def transactional(cluster: Cluster, transactional_id: str) -> Producer:
    producer = Producer(bootstrap_servers=cluster.bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    return producer


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(cluster: Cluster) -> None:
    [one, other] = [create_topic(cluster.bootstrap, cluster.new_name()) for _ in range(2)]
    with transactional(cluster, cluster.new_name("tx")) as producer:
        producer.begin_transaction()
        for value in numbers(0, 10):
            producer.send(one, value)
            producer.send(other, value)
        producer.commit_transaction()
        producer.begin_transaction()
        aborted = producer.send(one, b"never")
        producer.abort_transaction()
        assert aborted.done()
        with producer.transaction():
            producer.send(one, b"again")
    for topic, extra in ((one, [b"again"]), (other, [])):
        assert (
            values_of(read_all(cluster.bootstrap, topic, isolation_level=COMMITTED))
            == numbers(0, 10) + extra
        )


def test_an_exception_in_the_block_aborts(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with transactional(cluster, cluster.new_name("tx")) as producer:
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"lost")
            producer.flush()
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(topic, b"kept")
    assert values_of(read_all(cluster.bootstrap, topic)) == [b"lost", b"kept"]
    assert values_of(read_all(cluster.bootstrap, topic, isolation_level=COMMITTED)) == [b"kept"]


def test_an_open_transaction_holds_readers_back(cluster: Cluster) -> None:
    """Until it ends, who reads what is committed stops before it; `lag` tells both truths."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    with (
        transactional(cluster, cluster.new_name("tx")) as producer,
        Consumer(
            bootstrap_servers=cluster.bootstrap,
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
        ) as consumer,
        Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as careless,
    ):
        consumer.assign([partition])
        careless.assign([partition])
        producer.begin_transaction()
        for value in numbers(0, 5):
            producer.send(topic, value)
        producer.flush()
        assert values_of(take(careless, 5)) == numbers(0, 5)
        assert consumer.poll(0.3) == []
        assert consumer.end_offsets([partition]) == {partition: 0}
        assert careless.end_offsets([partition]) == {partition: 5}
        assert consumer.lag() == {partition: 0}
        assert careless.lag() == {partition: 0}
        producer.commit_transaction()
        assert values_of(take(consumer, 5)) == numbers(0, 5)


def test_read_process_write(cluster: Cluster) -> None:
    """Offsets are committed with the records that came of them, or not at all."""
    source = create_topic(cluster.bootstrap, cluster.new_name())
    target = create_topic(cluster.bootstrap, cluster.new_name())
    group = cluster.new_name("group")
    partition = TopicPartition(source, 0)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in numbers(0, 30):
            producer.send(source, value)

    def consumer() -> Consumer:
        made = Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            isolation_level=COMMITTED,
        )
        made.subscribe([source])
        return made

    with transactional(cluster, cluster.new_name("tx")) as producer:
        for is_kept in (True, False, True):
            with consumer() as reader:
                records: list[ConsumerRecord] = []
                while not records:
                    records = reader.poll(1.0, max_records=10)
                producer.begin_transaction()
                for record in records:
                    producer.send(target, b"-" + (record.value or b""))
                offsets = {partition: records[-1].offset + 1}
                producer.send_offsets_to_transaction(offsets, reader.group_identity())
                if is_kept:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
                found = reader.committed([partition])[partition]
                copied = values_of(read_all(cluster.bootstrap, target, isolation_level=COMMITTED))
                assert found is not None
                assert copied == [b"-" + value for value in numbers(0, found.offset)]


def test_a_successor_shuts_its_predecessor_out(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    name = cluster.new_name("tx")
    old = transactional(cluster, name)
    old.begin_transaction()
    old.send(topic, b"old")
    old.flush()
    with transactional(cluster, name) as new:
        with new.transaction():
            new.send(topic, b"new")
        with pytest.raises(KafkaError) as fenced:
            old.send(topic, b"too late")
            old.commit_transaction()
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
        # It does not recover.
        with pytest.raises(KafkaError):
            old.begin_transaction()
    old.close(5)
    assert values_of(read_all(cluster.bootstrap, topic, isolation_level=COMMITTED)) == [b"new"]


def test_calls_in_the_wrong_order(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(
        bootstrap_servers=cluster.bootstrap, transactional_id=cluster.new_name("tx")
    ) as producer:
        with pytest.raises(KafkaError):
            producer.begin_transaction()
        producer.init_transactions()
        with pytest.raises(KafkaError):
            producer.send(topic, b"outside")
        with pytest.raises(KafkaError):
            producer.commit_transaction()
        with producer.transaction():
            producer.send(topic, b"inside")
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as plain,
        pytest.raises(KafkaError),
    ):
        plain.begin_transaction()
    assert values_of(read_all(cluster.bootstrap, topic)) == [b"inside"]


def test_many_transactions_in_a_row(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 3)
    kept: list[bytes] = []
    with transactional(cluster, cluster.new_name("tx")) as producer:
        for number in range(60):
            producer.begin_transaction()
            value = b"%d" % number
            producer.send(topic, value, value)
            if number % 3 == 0:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                kept.append(value)
    read = values_of(read_all(cluster.bootstrap, topic, 3, isolation_level=COMMITTED))
    assert sorted(value or b"" for value in read) == sorted(kept)
