"""Retry topics as their users meet them: records that fail come back, or become dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from headwater import Admin, Consumer, ConsumerRecord, Producer, TopicPartition
from headwater.client.admin.configs import ConfigChange, ConfigResource, ResourceType
from headwater.client.admin.delayed import DelayedStats
from headwater.client.kafka_errors import PolicyViolationError
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DEAD_HEADER,
    DLQ_DELIVERY_COUNT_HEADER,
    DLQ_GROUP_HEADER,
    DLQ_MESSAGE_HEADER,
    DLQ_OFFSET_HEADER,
    DLQ_PARTITION_HEADER,
    DLQ_TOPIC_HEADER,
    ERROR_HEADER,
    ORIGIN_HEADER,
)
from tests.support.waiting import eventually

ALLOWED = {"errors.deadletterqueue.group.enable": "true"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        yield started


@pytest.fixture
def producer(running: RunningBroker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=running.bootstrap) as made:
        yield made


def retry_topic(
    running: RunningBroker, group: str, *, dead: Mapping[str, str] | None = ALLOWED, **more: str
) -> str:
    """A retry topic of two attempts, 100 and 200 ms later; and its dead-letter topic."""
    if dead is not None:
        running.create_topic(f"dlq.{group}", configs=dead)
    configs = {
        "delay.mode": "retry",
        "retry.delays": "100ms,200ms",
        "retry.dead.letter.topic": f"dlq.{group}",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return running.create_topic(f"retry.{group}", configs=configs)


def read(
    running: RunningBroker, topic: str, count: int, wait_s: float = 30
) -> list[ConsumerRecord]:
    """The first committed records of a topic, once they are there."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + wait_s
    with Consumer(
        bootstrap_servers=running.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(records) < count and time.monotonic() < deadline:
            records += consumer.poll(timeout_s=0.2)
    return records


def shown(running: RunningBroker, topic: str) -> list[ConsumerRecord]:
    """All that a consumer is shown up to the end of a topic."""
    partition = TopicPartition(topic, 0)
    records: list[ConsumerRecord] = []
    with Consumer(bootstrap_servers=running.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            records += consumer.poll(timeout_s=5)
    return records


def waiting(admin: Admin, topic: str) -> int:
    stats = admin.delayed_stats(topic)[TopicPartition(topic, 0)]
    assert isinstance(stats, DelayedStats)
    return stats.waiting


def send_on(producer: Producer, topic: str, record: ConsumerRecord, **more: str) -> None:
    """What a consumer that fails does."""
    headers = [*record.headers, *((name, text.encode()) for name, text in more.items())]
    producer.send(topic, record.value, record.key, headers=headers).result()


def test_a_record_that_keeps_failing_comes_twice_and_is_a_dead_letter_then(
    running: RunningBroker, producer: Producer
) -> None:
    retry = retry_topic(running, "billing")
    first = [(ORIGIN_HEADER, b"orders-3@1234"), ("mine", b"x"), (ERROR_HEADER, b"no money")]
    sent_ms = time.time() * 1000
    producer.send(retry, b"v", b"k", headers=first).result()
    (once,) = read(running, retry, 1)
    assert dict(once.headers)[ATTEMPTS_HEADER] == b"1"
    assert once.timestamp >= sent_ms + 100
    send_on(producer, retry, once)
    _, twice = read(running, retry, 2)
    assert dict(twice.headers)[ATTEMPTS_HEADER] == b"2"
    assert twice.timestamp >= once.timestamp + 200
    send_on(producer, retry, twice)
    (dead,) = read(running, "dlq.billing", 1)
    assert (dead.key, dead.value) == (b"k", b"v")
    headers = dict(dead.headers)
    assert headers["mine"] == b"x"
    assert headers[ORIGIN_HEADER] == b"orders-3@1234"
    assert headers[DLQ_TOPIC_HEADER] == b"orders"
    assert headers[DLQ_PARTITION_HEADER] == b"3"
    assert headers[DLQ_OFFSET_HEADER] == b"1234"
    assert headers[DLQ_GROUP_HEADER] == b"billing"
    assert headers[DLQ_DELIVERY_COUNT_HEADER] == b"3"
    assert headers[DLQ_MESSAGE_HEADER] == b"no money"


def test_what_cannot_be_handled_at_all_is_a_dead_letter_at_once(
    running: RunningBroker, producer: Producer
) -> None:
    """The notes' first two kinds: what a consumer cannot handle, and what it does not want to."""
    retry = retry_topic(running, "hopeless")
    reasons = [b"not JSON", b"we do not sell there"]
    for number, reason in enumerate(reasons):
        producer.send(retry, b"%d" % number, headers=[(DEAD_HEADER, reason)]).result()
    dead = read(running, "dlq.hopeless", 2)
    assert [dict(each.headers)[DLQ_MESSAGE_HEADER] for each in dead] == reasons
    # Without a name of its own each is called by where it came to first.
    assert [dict(each.headers)[ORIGIN_HEADER] for each in dead] == [
        b"retry.hopeless-0@0",
        b"retry.hopeless-0@1",
    ]
    assert shown(running, retry) == []


def test_a_name_stays_though_nobody_gave_one(running: RunningBroker, producer: Producer) -> None:
    retry = retry_topic(running, "nameless")
    told = producer.send(retry, b"v").result()
    (once,) = read(running, retry, 1)
    name = f"retry.nameless-0@{told.offset}".encode()
    assert dict(once.headers)[ORIGIN_HEADER] == name
    send_on(producer, retry, once)
    _, twice = read(running, retry, 2)
    assert dict(twice.headers)[ORIGIN_HEADER] == name


def test_thousands_of_letters_are_moved_once_each(
    running: RunningBroker, producer: Producer
) -> None:
    retry = retry_topic(running, "many")
    for number in range(3_000):
        producer.send(retry, b"%d" % number, headers=[(DEAD_HEADER, b"many")])
    producer.flush()
    dead = read(running, "dlq.many", 3_000)
    assert sorted(int(each.value or b"") for each in dead) == list(range(3_000))
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        # The marker of the last move comes to the two topics one after the other.
        assert eventually(lambda: waiting(admin, retry) == 0)


@pytest.mark.parametrize("dead", [None, {}], ids=["no topic", "a topic that does not allow it"])
def test_letters_wait_while_their_topic_cannot_take_them_and_hold_up_nothing(
    running: RunningBroker,
    producer: Producer,
    dead: Mapping[str, str] | None,
) -> None:
    group = f"waiting-{dead is None}"
    retry = retry_topic(running, group, dead=dead)
    producer.send(retry, b"dead", headers=[(DEAD_HEADER, b"x")]).result()
    producer.send(retry, b"again").result()
    (shown,) = read(running, retry, 1)
    assert shown.value == b"again"
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        assert waiting(admin, retry) == 1
        if dead is None:
            running.create_topic(f"dlq.{group}", configs=ALLOWED)
        else:
            topic = ConfigResource(ResourceType.TOPIC, f"dlq.{group}")
            admin.alter_configs({topic: [ConfigChange(*each) for each in ALLOWED.items()]})
    (letter,) = read(running, f"dlq.{group}", 1)
    assert letter.value == b"dead"


def test_a_retry_topic_that_is_full_of_dead_letters_is_emptied(
    running: RunningBroker, producer: Producer
) -> None:
    """Moving a letter writes to the topic that takes nothing more."""
    retry = retry_topic(running, "full", dead=None, delay_pending_max_bytes="1000")
    sent = 0
    with pytest.raises(PolicyViolationError):
        while True:
            producer.send(retry, b"%d" % sent, headers=[(DEAD_HEADER, b"x")]).result()
            sent += 1
    assert sent > 1
    running.create_topic("dlq.full", configs=ALLOWED)
    assert len(read(running, "dlq.full", sent)) == sent
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        assert eventually(lambda: waiting(admin, retry) == 0)
    producer.send(retry, b"again").result()


def test_an_aborted_failure_is_none(running: RunningBroker) -> None:
    """A worker that sends a failure on and its offsets in one transaction, and aborts it."""
    retry = retry_topic(running, "aborted")
    with Producer(bootstrap_servers=running.bootstrap, transactional_id="aborted") as producer:
        producer.init_transactions()
        for ending in ("abort", "commit"):
            producer.begin_transaction()
            producer.send(retry, ending.encode(), headers=[(DEAD_HEADER, b"x")])
            if ending == "abort":
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    (letter,) = read(running, "dlq.aborted", 1)
    assert letter.value == b"commit"


def test_a_dead_letter_too_large_for_its_topic_waits_alone(
    running: RunningBroker, producer: Producer
) -> None:
    retry = retry_topic(running, "large", dead={**ALLOWED, "max.message.bytes": "2000"})
    for size in (10, 5_000, 20):
        producer.send(retry, b"x" * size, headers=[(DEAD_HEADER, b"x")]).result()
    dead = read(running, "dlq.large", 2)
    assert [len(each.value or b"") for each in dead] == [10, 20]
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        assert waiting(admin, retry) == 1
