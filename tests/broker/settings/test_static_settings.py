"""What a broker is told at its start, and what of it contradicts itself."""

import pytest

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import static_of


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
        ({"log.dirs": "/a,/b", "cordoned.log.dirs": "/c"}, "names '/c', which is not in log.dirs"),
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


@pytest.mark.parametrize(
    "text", ["zoo", "zoo:2181", "[::1]:2181", "zoo1:2181, zoo2:2182/clusters/one", "zoo:2181/"]
)
def test_an_address_of_zookeeper_is_taken_with_and_without_a_path(text: str) -> None:
    assert static_of({"zookeeper.connect": text}).optional_text("zookeeper.connect") == text
