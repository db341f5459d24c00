"""Stages of one's own on a broker: counted, published, added up, shown."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headwater import Consumer, KafkaError, Producer
from headwater.client.errors import ClientClosedError
from headwater.delivery import AuditStage
from headwater.delivery.audit.stage_rows import STAGES_TOPIC
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import run_command
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker(settings={"audit.bucket.ms": "1000"}) as one:
        yield one


def told(running: RunningBroker, topic: str) -> dict[str, Any]:
    done = run_command("audit", "topic", topic, "--json", "-b", running.bootstrap)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_stage_counts_what_passes_and_is_shown_beside_groups(running: RunningBroker) -> None:
    running.create_topic("orders")
    with Producer(bootstrap_servers=running.bootstrap, audit_ids_enable=True) as writer:
        for _ in range(20):
            writer.send("orders", b"12345")
    with (
        AuditStage(bootstrap_servers=running.bootstrap, stage="billing-db") as stage,
        AuditStage(
            bootstrap_servers=running.bootstrap, stage="billing", tier="consumer"
        ) as delivered,
        Consumer(
            bootstrap_servers=running.bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            interceptors=[delivered.interceptor],
        ) as consumer,
    ):
        consumer.subscribe(["orders"])
        seen = 0
        while seen < 20:
            for record in consumer.poll(1.0):
                seen += 1
                if record.offset != 7:
                    stage.count(record)
        stage.flush(30)
        stage.add("orders", 0, record.timestamp, count=2, size_bytes=10)
    found = told(running, "orders")["stages"]
    assert [(each["tier"], each["stage"], each["count"], each["bytes"]) for each in found] == [
        ("consumer", "billing", 20, 100),
        ("stage", "billing-db", 21, 105),
    ]
    eventually(lambda: told(running, "orders")["count"] == 20)
    shown = run_command("audit", "topic", "orders", "-b", running.bootstrap)
    assert any(line.split()[:5] == ["billing-db", "stage", "21", "0", "1"] for line in shown.lines)
    assert STAGES_TOPIC in running.topics()


def test_a_producer_is_a_stage_that_knows_what_it_gave_up(running: RunningBroker) -> None:
    running.create_topic("sent", partitions=2, configs={"max.message.bytes": "2000"})
    with (
        AuditStage(bootstrap_servers=running.bootstrap, stage="shop", tier="producer") as stage,
        Producer(
            bootstrap_servers=running.bootstrap,
            audit_ids_enable=True,
            interceptors=[stage.interceptor],
        ) as writer,
    ):
        for _ in range(30):
            writer.send("sent", b"v")
        assert writer.send("sent", bytes(5000)).exception(30) is not None
    [found] = told(running, "sent")["stages"]
    assert (found["tier"], found["count"], found["given_up_count"]) == ("producer", 30, 1)


def test_a_stage_publishes_by_itself_when_a_bucket_is_over(running: RunningBroker) -> None:
    running.create_topic("alone")
    with AuditStage(bootstrap_servers=running.bootstrap, stage="s", bucket_ms=100) as stage:
        stage.add("alone", 0, time.time_ns() // 1_000_000)
        eventually(lambda: [each["count"] for each in told(running, "alone")["stages"]] == [1])


def test_what_cannot_be_written_is_kept_and_written_later(running: RunningBroker) -> None:
    running.create_topic("later")
    limits: Any = {"delivery_timeout_ms": 1000, "request_timeout_ms": 500, "max_block_ms": 1000}
    with AuditStage(bootstrap_servers=running.bootstrap, stage="kept", **limits) as stage:
        stage.add("later", 0, time.time_ns() // 1_000_000)
        stage.flush(30)
        running.stop()
        stage.add("later", 0, time.time_ns() // 1_000_000)
        with pytest.raises(KafkaError):
            stage.flush(5)
        running.start()
        stage.flush(30)
    assert [each["count"] for each in told(running, "later")["stages"]] == [2]


def test_wrong_arguments_are_told_in_a_sentence(running: RunningBroker) -> None:
    with pytest.raises(ValueError, match="give it a name"):
        AuditStage(bootstrap_servers=running.bootstrap, stage="")
    with pytest.raises(ValueError, match="positive"):
        AuditStage(bootstrap_servers=running.bootstrap, stage="s", bucket_ms=0)
    stage = AuditStage(bootstrap_servers=running.bootstrap, stage="s")
    stage.close()
    with pytest.raises(ClientClosedError):
        stage.add("orders", 0, 0)
