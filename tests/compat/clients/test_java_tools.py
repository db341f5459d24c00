"""Apache Kafka's own command line tools, in Java, against the broker.

Each run of a tool costs the better part of a second, so a test asks for much at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import run_tool
from tests.support.kafka.node import require_apache_kafka
from tests.support.other_clients.brokers import HEADWATER, BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka

MakeTopic = Callable[..., str]


class JavaTools:
    """Runs tools against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._kafka = require_apache_kafka()

    def run(self, name: str, *args: str, input: str | None = None) -> str:
        """What the tool prints; it must succeed."""
        address = ["--bootstrap-server", self.bootstrap]
        return run_tool(name, [*address, *args], input=input, kafka=self._kafka).stdout

    def fail(self, name: str, *args: str) -> str:
        """What the tool complains of; it must not succeed."""
        address = ["--bootstrap-server", self.bootstrap]
        done = run_tool(name, [*address, *args], check_exit=False, kafka=self._kafka)
        assert done.returncode != 0
        return done.stdout + done.stderr


@pytest.fixture
def java(broker: BrokerUnderTest) -> JavaTools:
    return JavaTools(broker.bootstrap)


def test_topics(java: JavaTools, new_name: Callable[[], str]) -> None:
    topic = new_name()
    created = java.run(
        "topics", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1",
        "--config", "retention.ms=3600000",
    )  # fmt: skip
    assert created.strip() == f"Created topic {topic}."
    java.run("topics", "--alter", "--topic", topic, "--partitions", "3")
    refusal = java.fail("topics", "--alter", "--topic", topic, "--partitions", "2")
    assert "InvalidPartitionsException" in refusal
    first, *partitions = java.run("topics", "--describe", "--topic", topic).strip().splitlines()
    summary = dict(pair.split(": ", 1) for pair in first.split("\t") if ": " in pair)
    assert (summary["Topic"], summary["PartitionCount"]) == (topic, "3")
    assert summary["ReplicationFactor"] == "1"
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", summary["TopicId"])
    assert "retention.ms=3600000" in summary["Configs"].split(",")
    for number, line in enumerate(partitions):
        cells = dict(pair.split(": ", 1) for pair in line.strip().split("\t") if ": " in pair)
        assert cells["Partition"] == str(number)
        assert cells["Leader"] == cells["Replicas"] == cells["Isr"]
    assert len(partitions) == 3
    java.run("topics", "--delete", "--topic", topic)
    assert topic not in java.run("topics", "--list").split()


def test_console_producer_and_consumer(
    java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    java.run(
        "console-producer", "--topic", topic, "--compression-codec", "zstd", "--sync",
        "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
        "--reader-property", "null.marker=NULL",
        input="a:1,b:2\tk1\tv1\nNULL\tk2\tNULL\nNULL\tNULL\tGröße 你好\n",
    )  # fmt: skip
    assert [(each.key, each.value, each.headers) for each in confluent.consume(topic, 0)] == [
        (b"k1", b"v1", (("a", b"1"), ("b", b"2"))),
        (b"k2", None, ()),
        (None, "Größe 你好".encode(), ()),
    ]
    confluent.produce(topic, [Message(b"v4", b"k4", (("h", b"x"),))])
    printed = java.run(
        "console-consumer", "--topic", topic, "--partition", "0", "--offset", "1",
        "--max-messages", "3",
        "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true",
        "--formatter-property", "print.offset=true", "--formatter-property", "null.literal=NULL",
    )  # fmt: skip
    assert printed.splitlines() == [
        "Offset:1\tNO_HEADERS\tk2\tNULL",
        "Offset:2\tNO_HEADERS\tNULL\tGröße 你好",
        "Offset:3\th:x\tk4\tv4",
    ]


def test_configs(java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=5000)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    added = "retention.ms=7200000,cleanup.policy=[compact,delete]"
    java.run(
        "configs", "--alter", *of_topic, "--add-config", added,
        "--delete-config", "max.message.bytes",
    )  # fmt: skip
    described = java.run("configs", "--describe", *of_topic)
    assert f"Dynamic configs for topic {topic} are:" in described
    assert "retention.ms=7200000 sensitive=false" in described
    assert "cleanup.policy=compact,delete sensitive=false" in described
    assert "DEFAULT_CONFIG:log.cleanup.policy=delete" in described
    assert "max.message.bytes" not in described
    assert "InvalidConfigurationException" in java.fail(
        "configs", "--alter", *of_topic, "--add-config", "retention.ms=-7"
    )

    [broker_id] = confluent.broker_ids()
    of_broker = ("--entity-type", "brokers", "--entity-name", str(broker_id))
    java.run("configs", "--alter", *of_broker, "--add-config", "log.cleaner.threads=2")
    try:
        described = java.run("configs", "--describe", *of_broker)
        assert "log.cleaner.threads=2 sensitive=false" in described
        assert f"DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, {DEFAULT_THREADS}" in described
    finally:
        confluent.reset_broker(broker_id, ["log.cleaner.threads"])


DEFAULT_THREADS = "DEFAULT_CONFIG:log.cleaner.threads=1"


@pytest.mark.full
def test_configs_of_groups(java: JavaTools, new_name: Callable[[], str]) -> None:
    of_group = ("--entity-type", "groups", "--entity-name", new_name())
    setting = "consumer.session.timeout.ms"
    java.run("configs", "--alter", *of_group, "--add-config", f"{setting}=50000")
    shown = f"{setting}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{setting}=50000"
    eventually(lambda: shown in java.run("configs", "--describe", *of_group))
    assert shown in java.run("configs", "--describe", "--entity-type", "groups")
    everything = java.run("configs", "--describe", *of_group, "--all")
    assert "consumer.heartbeat.interval.ms=5000 sensitive=false" in everything
    refusal = java.fail("configs", "--alter", *of_group, "--add-config", f"{setting}=70000")
    assert "InvalidConfigurationException" in refusal
    java.run("configs", "--alter", *of_group, "--delete-config", setting)
    eventually(lambda: setting not in java.run("configs", "--describe", *of_group))


@pytest.mark.full
def test_client_metrics(java: JavaTools, new_name: Callable[[], str]) -> None:
    name = new_name()
    java.run(
        "client-metrics", "--alter", "--name", name, "--metrics", "a.,b.", "--interval", "1000",
        "--match", "client_id=a",
    )  # fmt: skip
    eventually(lambda: name in java.run("client-metrics", "--list").split())
    described = java.run("client-metrics", "--describe", "--name", name)
    assert described.split("\n")[:4] == [
        f"Client metrics configs for {name} are:",
        "  interval.ms=1000",
        "  match=client_id=a",
        "  metrics=a.,b.",
    ]
    refusal = java.fail("client-metrics", "--alter", "--name", name, "--interval", "5")
    assert "InvalidRequestException" in refusal
    java.run("client-metrics", "--delete", "--name", name)
    eventually(lambda: name not in java.run("client-metrics", "--list").split())


@pytest.mark.full
def test_elections(java: JavaTools, make_topic: MakeTopic) -> None:
    one = ("--topic", make_topic(), "--partition", "0")
    preferred = ("--election-type", "preferred")
    assert java.run("leader-election", *preferred, "--all-topic-partitions").strip() == ""
    told = java.run("leader-election", *preferred, *one)
    assert told.strip() == f"Valid replica already elected for partitions {one[1]}-0"
    refusal = java.fail("leader-election", *preferred, "--topic", "absent", "--partition", "0")
    assert "UnknownTopicOrPartitionException" in refusal
    assert "1 replica(s) could not be elected" in refusal


@pytest.mark.full
def test_what_is_switched_off(java: JavaTools) -> None:
    assert "SecurityDisabledException" in java.fail("acls", "--list")
    for kind in ("users", "clients", "ips"):
        assert java.run("configs", "--describe", "--entity-type", kind).strip() == ""
    of_nobody = ("--entity-type", "users", "--entity-name", "nobody")
    assert java.run("configs", "--describe", *of_nobody).strip() == ""
    listed = java.run("reassign-partitions", "--list")
    assert listed.strip() == "No partition reassignments found."
    tokens = java.fail("delegation-tokens", "--describe", "--command-config", "/dev/null")
    assert "UnsupportedByAuthenticationException" in tokens


def test_offsets_and_deleted_records(
    java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2)
    confluent.produce(topic, [Message(b"%d" % n, partition=n % 2) for n in range(10)])
    file = tmp_path / "delete.json"
    wanted = {"topic": topic, "partition": 1, "offset": 3}
    file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    deleted = java.run("delete-records", "--offset-json-file", str(file))
    assert f"partition: {topic}-1\tlow_watermark: 3" in deleted
    earliest = java.run("get-offsets", "--topic", topic, "--time", "earliest")
    assert earliest.split() == [f"{topic}:0:0", f"{topic}:1:3"]
    latest = java.run("get-offsets", "--topic", topic)
    assert latest.split() == [f"{topic}:0:5", f"{topic}:1:5"]


def test_what_the_broker_says_of_itself(
    java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic, broker: BrokerUnderTest
) -> None:
    topic = make_topic(2)
    confluent.produce(topic, [Message(b"value")])
    versions = java.run("broker-api-versions")
    assert re.match(
        rf"{re.escape(java.bootstrap)} \(id: \d+ rack: null isFenced: false\) -> \(", versions
    )
    offered = dict(re.findall(r"^\t(\w+)\(\d+\): (.*?) \[usable: \d+\]", versions, re.MULTILINE))
    assert offered["Produce"] == "0 to 13"
    assert offered["Fetch"] == "4 to 18"
    assert offered["Metadata"] == "0 to 13"
    assert {"CreateTopics", "DeleteRecords", "InitProducerId"} <= offered.keys()

    *_, report = java.run("log-dirs", "--describe", "--topic-list", topic).strip().splitlines()
    [described] = json.loads(report)["brokers"]
    [directory] = described["logDirs"]
    assert directory["error"] is None
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert sizes[f"{topic}-0"] > 60 and sizes[f"{topic}-1"] == 0
    if broker.log_dir is not None:
        assert Path(directory["logDir"]) == broker.log_dir


@pytest.mark.parametrize("acks", ["all", pytest.param("1", marks=pytest.mark.full)])
def test_producer_performance(
    acks: str, java: JavaTools, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    report = run_tool(
        "producer-perf-test",
        [
            "--topic", topic, "--num-records", "20000", "--record-size", "100",
            "--throughput", "-1", "--bootstrap-server", java.bootstrap, "--command-property",
            f"acks={acks}", "compression.type=lz4",
        ],
    ).stdout  # fmt: skip
    assert report.strip().splitlines()[-1].startswith("20000 records sent, ")
    assert confluent.end_offsets(topic) == (0, 20_000)


def test_features(java: JavaTools, broker: BrokerUnderTest) -> None:
    told = java.run("features", "describe")
    levels = dict(re.findall(r"Feature: (\S+).* FinalizedVersionLevel: (\S+)", told))
    shared = {"group.version": "1", "transaction.version": "2"}
    assert shared.items() <= levels.items()
    if broker.kind == HEADWATER:
        # A client would use what a feature stands for.
        assert levels == shared
