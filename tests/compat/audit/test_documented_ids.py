"""The producers that docs/audit.md shows, run as they stand: their records have ids that fit."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater import Consumer, TopicPartition
from headwater.base.audit_id import ANY_PARTITION, AuditId, audit_id_of
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import run_command
from tests.support.kafka.node import require_java_client

_GUIDE = Path(__file__).parents[3] / "docs" / "audit.md"
_PYTHON = re.compile(
    r"^With (?P<client>[^\n]+):\n\n```python\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_JAVA = re.compile(r"^```java\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_TIMEOUT_S = 60.0
_COUNT = 40

SNIPPETS = {each["client"]: each["text"] for each in _PYTHON.finditer(_GUIDE.read_text())}

#: What the reader of the guide does with it.
_USES = {
    "confluent-kafka": """
producer = AuditedProducer({"bootstrap.servers": BOOTSTRAP})
for number in range(COUNT):
    producer.produce("orders", b"v", partition=number % 2)
producer.flush()
""",
    "kafka-python": """
producer = AuditedProducer(bootstrap_servers=BOOTSTRAP)
for number in range(COUNT):
    producer.send("orders", b"v", partition=number % 2, headers=[("a", b"b")])
producer.close()
""",
}
_JAVA_USE = """
class Shop {
    public static void main(String[] given) {
        var configs = new java.util.HashMap<String, Object>();
        configs.put("bootstrap.servers", "BOOTSTRAP");
        configs.put("interceptor.classes", java.util.List.of(AuditIds.class));
        var serializer = new org.apache.kafka.common.serialization.ByteArraySerializer();
        try (var producer = new org.apache.kafka.clients.producer.KafkaProducer<byte[], byte[]>(
                configs, serializer, serializer)) {
            for (int number = 0; number < COUNT; number++) {
                producer.send(new ProducerRecord<>("orders", number % 2, null, new byte[1]));
            }
        }
    }
}
"""


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        started.create_topic("orders", partitions=2)
        yield started


def check_producer(command: Sequence[str], running: RunningBroker) -> None:
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)
    found: list[AuditId] = []
    with Consumer(
        bootstrap_servers=running.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.assign([TopicPartition("orders", each) for each in range(2)])
        while len(found) < _COUNT:
            for record in consumer.poll(1.0):
                audit_id = audit_id_of(record.headers)
                assert audit_id is not None
                assert abs(audit_id.time_ms - record.timestamp) < 60_000
                found.append(audit_id)
    assert {each.partition for each in found} == {ANY_PARTITION}
    assert len({each.process for each in found}) == 1
    assert sorted(each.number for each in found) == list(range(_COUNT))
    asked = ("audit", "ids", "orders", "--from-beginning", "--grace", "0")
    told = run_command(*asked, "-b", running.bootstrap)
    assert told.exit_code == 0, told.stdout
    assert f"  {_COUNT} ids of 1 stream, 0 records without an id" in told.lines


def test_the_guide_has_a_producer_for_each_client() -> None:
    assert set(SNIPPETS) == set(_USES)


@pytest.mark.parametrize("client", _USES)
def test_a_stock_client_gives_ids(client: str, running: RunningBroker) -> None:
    names = f"BOOTSTRAP, COUNT = {running.bootstrap!r}, {_COUNT}\n"
    program = names + SNIPPETS[client] + _USES[client]
    check_producer([sys.executable, "-W", "ignore", "-c", program], running)


@pytest.mark.full
@pytest.mark.kafka
def test_javas_client_gives_ids(running: RunningBroker, tmp_path: Path) -> None:
    [snippet] = _JAVA.findall(_GUIDE.read_text())
    imports, interceptor = snippet.split("public class", 1)
    use = _JAVA_USE.replace("BOOTSTRAP", running.bootstrap).replace("COUNT", str(_COUNT))
    source = tmp_path / "Shop.java"
    # Of several classes in a file the first is run.
    source.write_text(f"{imports}{use}public class{interceptor}")
    java = require_java_client()
    check_producer(
        java.command(str(source), jvm_flags=("-Xmx256m", *java.quick_start_flags)), running
    )
