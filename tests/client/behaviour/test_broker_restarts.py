"""The one broker goes away and comes back while it is used, Headwater and Apache Kafka alike."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from headwater import Consumer, Producer, TopicPartition
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess
from tests.support.other_clients.users import (
    Poller,
    create_topic,
    partitions_of,
    read_all,
    shared_among,
    take,
    wait_for,
)
from tests.support.traffic.steady_writer import SteadyWriter

QUICK: Mapping[str, object] = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}

Broker = BrokerProcess | KafkaNode


def end(broker: Broker, how: str) -> None:
    if how == "kill":
        broker.kill()
    else:
        broker.stop()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_nothing_is_lost_doubled_or_reordered(broker: Broker, how: str) -> None:
    topic = create_topic(broker.bootstrap, "topic", 3)
    with (
        Producer(
            QUICK, bootstrap_servers=broker.bootstrap, linger_ms=1, batch_size=200
        ) as producer,
        SteadyWriter(producer, topic, 3) as writer,
    ):
        for _ in range(2):
            writer.wait_for_more()
            end(broker, how)
            broker.start()
        writer.wait_for_more()
    writer.check(read_all(broker.bootstrap, topic, 3))


def test_readers_and_members_find_back(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "topic", 2)
    partitions = partitions_of(topic, 2)
    reader = Consumer(QUICK, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    reader.assign(partitions)
    member = Consumer(
        QUICK,
        bootstrap_servers=broker.bootstrap,
        group_id="group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
    )
    member.subscribe([topic])
    polled = [Poller(reader), Poller(member)]
    try:
        with (
            Producer(QUICK, bootstrap_servers=broker.bootstrap) as producer,
            SteadyWriter(producer, topic, 2) as writer,
        ):
            writer.wait_for_more()
            wait_for(lambda: all(len(each.records) > 100 for each in polled), "both read")
            broker.kill()
            broker.start()
            writer.wait_for_more()
        total = sum(writer.counts.values())
        for each in polled:
            wait_for(lambda each=each: len(each.records) >= total, "all has come")  # type: ignore[misc]
            writer.check(sorted(each.records, key=lambda record: (record.partition, record.offset)))
        assert shared_among([polled[1]], partitions)
        polled[1].close(leaves=False)
        member.commit()
        committed = member.committed(partitions)
        assert {
            partition: found.offset for partition, found in committed.items() if found is not None
        } == {TopicPartition(topic, number): writer.counts[number] for number in (0, 1)}
    finally:
        for each in polled:
            each.close()


def test_calls_that_are_made_while_it_is_away(broker: Broker) -> None:
    """A commit and questions wait for the broker to come back instead of failing."""
    topic = create_topic(broker.bootstrap, "topic")
    partition = TopicPartition(topic, 0)
    with (
        Producer(QUICK, bootstrap_servers=broker.bootstrap) as producer,
        Consumer(
            QUICK,
            bootstrap_servers=broker.bootstrap,
            group_id="group",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        producer.send(topic, b"0").result(30)
        consumer.subscribe([topic])
        take(consumer, 1)
        broker.kill()
        with ThreadPoolExecutor(1) as threads:
            sent = producer.send(topic, b"1")
            calls: list[Future[Any]] = [
                threads.submit(consumer.commit),
                threads.submit(consumer.committed, [partition]),
                threads.submit(consumer.end_offsets, [partition]),
            ]
            assert not any(call.done() for call in calls)
            broker.start()
            assert sent.result(30).offset == 1
            calls[0].result(30)
            committed = calls[1].result(30)[partition]
            assert committed is not None
            assert committed.offset == 1
            assert calls[2].result(30)[partition] in (1, 2)


def test_a_transaction_outlives_its_broker(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "topic")
    with Producer(QUICK, bootstrap_servers=broker.bootstrap, transactional_id="tx") as producer:
        producer.init_transactions()
        for number in range(2):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number).result(60)
            broker.kill()
            broker.start()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    values = [
        record.value
        for record in read_all(broker.bootstrap, topic, isolation_level="read_committed")
    ]
    assert values == [b"0"]
