"""Workers of a group that has a queue for each delay: the notes' Q1, Q2 and so on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headwater import Admin, Consumer, KafkaError, Producer, TopicPartition
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from headwater.delivery import DeadLetter, RetryPolicy, Worker
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.waiting import eventually

POLICY = RetryPolicy(["100ms", "100ms", "300ms"], queues=True)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        yield started


def worker_of(running: RunningBroker, group: str, handler: object) -> Worker:
    return Worker(
        *("orders",),
        group=group,
        handler=handler,  # type: ignore[arg-type]
        bootstrap_servers=running.bootstrap,
        retry=POLICY,
        create_topics=True,
        retry_partitions=1,
        commit_interval=0.05,
    )


def letters(running: RunningBroker, topic: str, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    with Consumer(
        bootstrap_servers=running.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(found) < count:
            found += eventually(lambda: consumer.poll(0.2))
    return found


def test_a_record_goes_from_queue_to_queue_and_is_a_dead_letter_then(
    running: RunningBroker,
) -> None:
    running.create_topic("orders")
    seen: list[tuple[str, bytes, bytes | None]] = []

    def handle(record: ConsumerRecord) -> None:
        seen.append((record.topic, record.value, dict(record.headers).get("headwater-attempts")))
        if record.value == b"hopeless":
            raise DeadLetter("nonsense")
        raise OSError("the database is away")

    worker = worker_of(running, "billing", handle)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            producer.send("orders", b"bad").result()
            found = letters(running, "dlq.billing", 1)
            producer.send("orders", b"hopeless").result()
            found = letters(running, "dlq.billing", 2)
    finally:
        worker.stop()
        thread.join(30)
    assert seen == [
        ("orders", b"bad", None),
        ("retry.billing.100ms", b"bad", b"1"),
        ("retry.billing.100ms", b"bad", b"2"),
        ("retry.billing.300ms", b"bad", b"3"),
        ("orders", b"hopeless", None),
    ]
    dead_topic = ConfigResource(ResourceType.TOPIC, "dlq.billing")
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        entries = admin.describe_configs([dead_topic], names=["retention.ms"])[dead_topic]
    assert not isinstance(entries, KafkaError)
    assert entries[0].value == "-1", "letters wait for as long as it takes"
    groups = {dict(each.headers)["__dlq.errors.group"] for each in found}
    assert ([each.value for each in found], groups) == ([b"bad", b"hopeless"], {b"billing"})


def test_a_queue_that_is_missing_is_told_and_others_topics_are_left_alone(
    running: RunningBroker,
) -> None:
    configs = POLICY.topic_configs("shop")
    running.create_topic("dlq.shop", configs={"errors.deadletterqueue.group.enable": "true"})
    running.create_topic("retry.shop.100ms", configs=configs)
    # The retry topic of another group, which is called as a queue of this one would be.
    running.create_topic("retry.shop.300ms", configs=configs | {"retry.group": "shop.300ms"})
    with pytest.raises(UnknownTopicOrPartitionError, match=r"none called 'retry\.shop\.300ms'"):
        worker_of(running, "shop", print).run()


def test_a_loop_of_ones_own_chooses_the_queue_by_the_attempts(running: RunningBroker) -> None:
    running.create_topic("refunds")
    delays = ["5s", "1m"]
    for name in RetryPolicy(delays, queues=True).topic_names("refunds"):
        running.create_topic(name)
    with (
        Producer(bootstrap_servers=running.bootstrap) as producer,
        Consumer(
            bootstrap_servers=running.bootstrap, group_id="refunds", auto_offset_reset="earliest"
        ) as consumer,
    ):
        for attempts in (b"0", b"1", b"7"):
            producer.send("refunds", b"v", headers=[("headwater-attempts", attempts)]).result()
        consumer.subscribe(["refunds"])
        records: list[ConsumerRecord] = []
        while len(records) < 3:
            records += eventually(lambda: consumer.poll(0.2))
        told = [
            consumer.retry_later(record, "busy", producer=producer, queues=delays).result(10)
            for record in records
        ]
        assert [each.topic for each in told] == [
            "retry.refunds.5s",
            "retry.refunds.1m",
            "retry.refunds.1m",
        ]
