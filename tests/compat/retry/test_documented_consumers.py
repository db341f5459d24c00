"""The consumers that docs/retry.md shows, run as they stand, on a record that keeps failing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater import Consumer, ConsumerRecord, Producer, TopicPartition
from headwater.delivery import RetryPolicy
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from headwater.wire.delayed.headers import (
    DLQ_DELIVERY_COUNT_HEADER,
    DLQ_GROUP_HEADER,
    DLQ_MESSAGE_HEADER,
    ORIGIN_HEADER,
)
from tests.support.kafka.node import require_java_client
from tests.support.waiting import eventually

_GUIDE = Path(__file__).parents[3] / "docs" / "retry.md"
_PYTHON = re.compile(
    r"^With (?P<client>[^\n]+):\n\n```python\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_JAVA = re.compile(r"^```java\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_TIMEOUT_S = 60.0

SNIPPETS = {each["client"]: each["text"] for each in _PYTHON.finditer(_GUIDE.read_text())}

#: What the reader of the guide has: a handler, here one that tells what it was given.
_HANDLER = """
import os, sys

def handle(value):
    print(value.decode(), flush=True)
    if value == b"bad":
        raise ValueError("no such customer")
    if value == b"end":
        os._exit(0)

"""

#: The same for Java; a source file may have several classes, of which the first is run.
_JAVA_HANDLER = """
class Handler {
    static void handle(byte[] value) {
        String text = new String(value);
        System.out.println(text);
        System.out.flush();
        if (text.equals("bad")) {
            throw new IllegalArgumentException("no such customer");
        }
        if (text.equals("end")) {
            Runtime.getRuntime().halt(0);
        }
    }
}
"""


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        started.create_topic("orders")
        started.create_topic("dlq.billing", configs={"errors.deadletterqueue.group.enable": "true"})
        started.create_topic(
            "retry.billing",
            configs={
                "delay.mode": "retry",
                "retry.delays": "200ms,400ms",
                "retry.dead.letter.topic": "dlq.billing",
            },
        )
        yield started


def read_letter(bootstrap: str) -> ConsumerRecord:
    with Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition("dlq.billing", 0)])
        found = eventually(lambda: list(consumer.poll(timeout_s=1)))
        return found[0]


def test_the_guide_has_a_consumer_for_each_client() -> None:
    assert set(SNIPPETS) == {"confluent-kafka", "kafka-python", "aiokafka"}


def test_a_stock_client_chooses_the_queue_by_the_attempts(running: RunningBroker) -> None:
    """The consumer of confluent-kafka, with what the guide says about queues."""
    policy = RetryPolicy(["200ms", "400ms"], queues=True)
    names = policy.topic_names("shop")
    configs = policy.topic_configs("shop") | {"retry.dead.letter.topic": "dlq.billing"}
    for name in names:
        running.create_topic(name, configs=configs)
    found = re.search(r"^QUEUES = .*?^```$", _GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    queues = re.sub(r"^QUEUES = .*$", f"QUEUES = {names}", found[0], flags=re.MULTILINE)
    consumer = SNIPPETS["confluent-kafka"].replace("127.0.0.1:9092", running.bootstrap)
    consumer = consumer.replace('["orders", "retry.billing"]', '["orders", *QUEUES]')
    consumer = consumer.replace('"retry.billing"', "queue_of(record)").replace("billing", "shop")
    program = _HANDLER + queues.removesuffix("```") + consumer
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.DEVNULL
    ) as process:
        try:
            with Producer(bootstrap_servers=running.bootstrap) as producer:
                producer.send("orders", b"bad", b"key").result()
            letter = read_letter(running.bootstrap)
        finally:
            process.kill()
    with Consumer(bootstrap_servers=running.bootstrap, auto_offset_reset="earliest") as reader:
        shown: list[ConsumerRecord] = []
        reader.assign([TopicPartition(name, 0) for name in names])
        while len(shown) < 2:
            shown += eventually(lambda: reader.poll(0.2))
    assert {each.topic: dict(each.headers)["headwater-attempts"] for each in shown} == {
        "retry.shop.200ms": b"1",
        "retry.shop.400ms": b"2",
    }
    assert dict(letter.headers)[DLQ_GROUP_HEADER] == b"shop"


@pytest.mark.parametrize("client", SNIPPETS)
def test_a_stock_client_sends_on_what_it_cannot_handle(client: str, running: RunningBroker) -> None:
    program = _HANDLER + SNIPPETS[client].replace("127.0.0.1:9092", running.bootstrap)
    check_consumer([sys.executable, "-W", "ignore", "-c", program], running)


@pytest.mark.kafka
def test_javas_client_sends_on_what_it_cannot_handle(
    running: RunningBroker, tmp_path: Path
) -> None:
    [snippet] = _JAVA.findall(_GUIDE.read_text())
    source = tmp_path / "Billing.java"
    source.write_text(snippet.replace("127.0.0.1:9092", running.bootstrap) + _JAVA_HANDLER)
    java = require_java_client()
    flags = ("-Xmx256m", *java.quick_start_flags)
    check_consumer(java.command(str(source), jvm_flags=flags), running)


def check_consumer(command: Sequence[str], running: RunningBroker) -> None:
    """A record that keeps failing holds up nobody, and is a dead letter in the end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with Producer(bootstrap_servers=running.bootstrap) as producer:
                place = producer.send("orders", b"bad", b"key").result()
                producer.send("orders", b"good", b"key").result()
                letter = read_letter(running.bootstrap)
                producer.send("orders", b"end").result()
            handled = process.communicate(timeout=_TIMEOUT_S)[0].split()
        finally:
            process.kill()
    assert process.returncode == 0
    # Once from its topic, twice more from the retry topic; what came behind it did not wait for it.
    assert handled == ["bad", "good", "bad", "bad", "end"]
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (b"key", b"bad")
    assert headers[ORIGIN_HEADER] == f"orders-0@{place.offset}".encode()
    assert headers[DLQ_GROUP_HEADER] == b"billing"
    assert headers[DLQ_DELIVERY_COUNT_HEADER] == b"3"
    assert headers[DLQ_MESSAGE_HEADER] == b"no such customer"
