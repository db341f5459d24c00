"""Delayed delivery as its users meet it: producer, consumer, Admin and commands on a broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headwater import Admin, Consumer, ConsumerRecord, Producer, TopicPartition
from headwater.client.admin import require_all
from headwater.client.admin.delayed import DelayedStats
from headwater.client.kafka_errors import InvalidRequestError, ResourceNotFoundError
from headwater.delay import partition_delays
from headwater.delay.index.listing import ListingPlan
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from headwater.wire.delayed.copies import OrderKey
from tests.support.command import run_command

DELAYS = {"delay.mode": "header"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        yield started


@pytest.fixture
def topic(running: RunningBroker) -> str:
    return running.create_topic(configs=DELAYS)


@pytest.fixture
def producer(running: RunningBroker) -> Iterator[Producer]:
    with Producer(bootstrap_servers=running.bootstrap) as made:
        yield made


@pytest.fixture
def admin(running: RunningBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=running.bootstrap) as made:
        yield made


def read(running: RunningBroker, topic: str, count: int) -> list[ConsumerRecord]:
    """The first records of a topic, once they are there."""
    records: list[ConsumerRecord] = []
    with Consumer(bootstrap_servers=running.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(records) < count:
            records += consumer.poll(timeout_s=30)
        assert consumer.position(TopicPartition(topic, 0)) == end_offset(running, topic)
    return records


def end_offset(running: RunningBroker, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=running.bootstrap) as consumer:
        return consumer.end_offsets([partition])[partition]


def test_records_come_in_the_order_of_their_times(
    running: RunningBroker, topic: str, producer: Producer
) -> None:
    sent_ms = time.time() * 1000
    delays_ms = [300, 0, 150, 150]
    # None waits for the one before, or on a busy machine the first is due before the last is sent.
    sent = [
        producer.send(topic, b"%d" % number, key=b"k", delay=delay_ms)
        for number, delay_ms in enumerate(delays_ms)
    ]
    told = [each.result() for each in sent]
    ordinary = producer.send(topic, b"now").result()
    records = read(running, topic, 5)
    assert [each.value for each in records if each.delayed] == [b"1", b"2", b"3", b"0"]
    assert [each.offset for each in records if not each.delayed] == [ordinary.offset]
    for each in records:
        if each.delayed is not None:
            number = int(each.value or b"")
            assert each.delayed.id == told[number].message_id
            assert sent_ms + delays_ms[number] <= each.timestamp <= time.time() * 1000


def test_what_waits_can_be_looked_after(
    running: RunningBroker, topic: str, producer: Producer, admin: Admin
) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    first = producer.send(topic, b"first", deliver_at=at).result().message_id
    second = producer.send(topic, b"second", delay="2h", delay_id="mine").result().message_id
    third = producer.send(topic, b"third", delay="3h").result().message_id
    waiting = admin.list_delayed(topic).messages
    assert [each.id for each in waiting] == [first, second, third]
    assert waiting[0].due_ms == int(at.timestamp() * 1000)
    assert end_offset(running, topic) == 0  # Nothing can be seen, so nothing lags.
    # Both ends are included.
    assert [each.id for each in admin.list_delayed(topic, due_from=at, due_to=at).messages] == [
        first
    ]
    shown = run_command("delay", "list", topic, "-b", running.bootstrap)
    assert [line.split()[0] for line in shown.lines[1:]] == [str(each.id) for each in waiting]

    cancelled = run_command(
        "delay", "cancel", "--sender-id", "mine", "--topic", topic, "-b", running.bootstrap
    )
    assert (cancelled.exit_code, cancelled.lines) == (0, [f"Cancelled {second}."])
    with pytest.raises(InvalidRequestError, match=r"delay\.max\.ms"):
        admin.reschedule_delayed(first, delay="41d")
    admin.reschedule_delayed(first, delay="4h")
    assert [each.id for each in admin.list_delayed(topic).messages] == [third, first]
    admin.deliver_delayed_now(third)
    assert [each.value for each in read(running, topic, 1)] == [b"third"]
    for gone in (second, third):
        with pytest.raises(ResourceNotFoundError):
            admin.cancel_delayed(gone)

    # A stock client cancels by a record.
    producer.send(
        topic,
        b"",
        headers=[("headwater-delay", b"cancel"), ("headwater-delayed-offset", str(first).encode())],
    ).result()
    assert admin.list_delayed(topic).messages == []
    stats = admin.delayed_stats(topic)[TopicPartition(topic, 0)]
    assert isinstance(stats, DelayedStats)
    assert (stats.waiting, stats.delivered, stats.cancelled) == (0, 1, 2)


def test_what_is_put_off_at_the_last_moment_is_not_kept_in_memory(
    running: RunningBroker,
    topic: str,
    producer: Producer,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_delays, "_AHEAD_MS", 60_000)
    sent = producer.send(topic, b"soon", delay="30s").result()
    [cache] = [
        delays.cache
        for partition, delays in running._serving().context.delays
        if partition.topic_partition.topic == topic
    ]
    assert len(admin.list_delayed(topic).messages) == len(cache) == 1
    admin.reschedule_delayed(sent.message_id, delay="1h")
    assert len(cache) == 0


def test_a_restart_forgets_nothing(running: RunningBroker, topic: str, producer: Producer) -> None:
    later = producer.send(topic, b"later", delay="1h").result().message_id
    producer.send(topic, b"soon", delay="1s").result()
    producer.close()
    running.restart()
    assert [each.value for each in read(running, topic, 1)] == [b"soon"]
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        assert [each.id for each in admin.list_delayed(topic).messages] == [later]


def test_what_is_deleted_does_not_wait(
    running: RunningBroker, topic: str, producer: Producer, admin: Admin
) -> None:
    producer.send(topic, b"first", delay="1h").result()
    second = producer.send(topic, b"second", delay="1h").result().message_id
    admin.delete_records({TopicPartition(topic, 0): 1})
    assert [each.id for each in admin.list_delayed(topic).messages] == [second]
    [counts] = require_all(admin.delayed_stats([topic])).values()
    assert (counts.waiting, counts.deleted) == (1, 1)
    told = run_command(
        *("delete-records", topic, "--partition", 0, "--offset", -1),
        *("--json", "--bootstrap-server", running.bootstrap),
    )
    assert told.stderr == (
        f"headwater: 1 message that waited for its time in {topic}-0 was deleted with the records."
        "\n"
    )
    [partition] = json.loads(told.stdout)["partitions"]
    assert partition["deleted_waiting"] == 1


def test_more_is_deleted_than_is_looked_for_at_once(
    running: RunningBroker,
    topic: str,
    producer: Producer,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest is found when it would have been delivered, and counted then."""
    monkeypatch.setattr(partition_delays, "_DELETED_AT_ONCE_MAX", 2)
    sent = [producer.send(topic, b"%d" % number, delay="3s") for number in range(5)]
    last = sent[-1].result().message_id
    admin.delete_records({TopicPartition(topic, 0): last.offset})
    [counts] = require_all(admin.delayed_stats([topic])).values()
    assert (counts.waiting, counts.deleted) == (3, 2)
    assert [each.value for each in read(running, topic, 1)] == [b"4"]
    [counts] = require_all(admin.delayed_stats([topic])).values()
    assert (counts.waiting, counts.deleted) == (0, 4)


def test_files_are_listed_in_a_thread_and_may_go_meanwhile(
    topic: str, producer: Producer, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour may have millions, and nobody else may wait for who lists them."""
    later = producer.send(topic, b"later", delay="3h").result().message_id
    run, has_loop = ListingPlan.run, []

    def fail_at_first(plan: ListingPlan) -> list[OrderKey]:
        has_loop.append(asyncio._get_running_loop() is not None)
        if len(has_loop) == 1:
            raise FileNotFoundError
        return run(plan)

    monkeypatch.setattr(ListingPlan, "run", fail_at_first)
    assert [each.id for each in admin.list_delayed(topic).messages] == [later]
    # The counts in the answer look for what comes next; here and now, but only once.
    assert has_loop[:2] == [False, False]


def test_everything_a_fixed_time_later(running: RunningBroker, producer: Producer) -> None:
    configs = {"delay.mode": "fixed", "delay.ms": "400", "message.timestamp.type": "LogAppendTime"}
    topic = running.create_topic(configs=configs)
    sent = [producer.send(topic, b"%d" % number).result() for number in range(3)]
    assert [each.offset for each in sent] == [0, 1, 2]
    records = read(running, topic, 3)
    assert [(each.offset, each.value) for each in records] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert time.time() * 1000 >= records[-1].timestamp + 400
