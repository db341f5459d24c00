"""What a broker is told at its start: file, assignments, and what contradicts itself."""

import pytest

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import (
    client_endpoints,
    parse_assignments,
    read_static,
    static_of,
)
from headwater.net.endpoint import Endpoint

# The settings of the file that comes with Apache Kafka 4.1, for one node.
KAFKAS_OWN_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_kafkas_own_file_is_taken_as_it_is() -> None:
    values = read_static(KAFKAS_OWN_FILE, "server.properties")
    assert client_endpoints(values) == [Endpoint("PLAINTEXT", "", 9092)]
    assert values.texts("log.dirs") == ("/tmp/kraft-combined-logs",)
    assert values.sources["node.id"] == "server.properties"


def test_assignments_win_over_the_file_and_the_last_one_counts() -> None:
    values = read_static("num.partitions=3\n", "file", ["num.partitions=4", "num.partitions = 5"])
    assert values.integer("num.partitions") == 5
    assert values.sources["num.partitions"] == "--set"


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_assignments(["a=b=c"]) == {"a": "b=c"}


@pytest.mark.parametrize("assignment", ["num.partitions", "=3", ""])
def test_an_assignment_without_name_or_value_is_refused(assignment: str) -> None:
    with pytest.raises(SettingError, match="must be name=value"):
        read_static(assignments=[assignment])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"num.partition": "3"}, "did you mean num.partitions"),
        ({"num.partitions": "0"}, "num.partitions in test cannot be '0'"),
        ({"broker.id": "1", "node.id": "2"}, "broker.id and node.id are one thing"),
        ({"broker.id": "1001"}, "above 1000"),
        ({"broker.id.generation.enable": "false"}, "has no id"),
        ({"log.dirs": "/a,/a"}, "log.dirs names '/a' twice"),
        ({"listeners": "nonsense"}, "listeners is not right"),
        ({"listeners": "SSL://:9093"}, "speak SSL"),
        ({"listeners": "INSIDE://:9093"}, "has no protocol"),
        (
            {"listeners": "C://:1", "controller.listener.names": "c"},
            "no address where clients",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "not NAME:PROTOCOL"),
        ({"advertised.listeners": "nowhere"}, "advertised.listeners is not right"),
        ({"metrics.listen": "9090"}, "metrics.listen is not right"),
        ({"max.connections.per.ip.overrides": "10.0.0.1"}, "not host:count"),
        (
            {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"},
            "contradict each other",
        ),
        ({"compression.gzip.level": "0"}, "compression.gzip.level"),
        ({"zookeeper.connect": "zoo:port"}, "'zoo:port' is not HOST:PORT"),
        ({"zookeeper.connect": "zoo1:2181,,zoo2:2181"}, "'' is not HOST:PORT"),
        ({"zookeeper.connect": "zoo:70000"}, "no port 70000"),
        (
            {"zookeeper.connect": "zoo1:2181/a,zoo2:2181/a"},
            "one stands behind the last server only",
        ),
        ({"zookeeper.connect": "zoo:2181/a//b"}, "'/a//b' is not a path"),
        ({"zookeeper.digest.user": "headwater"}, "belong together"),
        ({"zookeeper.digest.password": "secret"}, "belong together"),
        ({"zookeeper.set.acl": "true"}, "set zookeeper.digest.user"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(texts: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message) as raised:
        static_of(texts, "test")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("texts", "broker_id"),
    [
        ({}, -1),
        ({"broker.id": "7"}, 7),
        ({"node.id": "8"}, 8),
        ({"broker.id": "9", "node.id": "9"}, 9),
        ({"broker.id": "1001", "reserved.broker.max.id": "2000"}, 1001),
        ({"broker.id": "1001", "broker.id.generation.enable": "false"}, 1001),
    ],
)
def test_either_name_gives_the_broker_its_id(texts: dict[str, str], broker_id: int) -> None:
    assert BrokerSettings(static_of(texts)).broker_id == broker_id


def test_a_named_listener_gets_its_protocol_from_the_map() -> None:
    texts = {
        "listeners": "inside://10.0.0.1:9092,OUTSIDE://[::1]:9093",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT, outside:plaintext",
    }
    assert client_endpoints(static_of(texts)) == [
        Endpoint("INSIDE", "10.0.0.1", 9092),
        Endpoint("OUTSIDE", "::1", 9093),
    ]


@pytest.mark.parametrize(
    "text", ["zoo", "zoo:2181", "[::1]:2181", "zoo1:2181, zoo2:2182/clusters/one", "zoo:2181/"]
)
def test_an_address_of_zookeeper_is_taken_with_and_without_a_path(text: str) -> None:
    assert static_of({"zookeeper.connect": text}).optional_text("zookeeper.connect") == text
