"""`headwater serve --brokers N`: what the brokers get, and what is refused."""

from pathlib import Path

import pytest

from headwater.base.properties_file import read_properties_file
from headwater.base.settings import SettingError
from headwater.broker.settings.listener_settings import advertised_endpoints, client_endpoints
from headwater.broker.settings.static_settings import static_of
from headwater.cli.serve.development_cluster import (
    broker_settings,
    refuse_directories_of_several,
    store_directory,
)
from tests.support.kafka.stock_settings import STOCK_SERVER


def test_ids_ports_and_directories_count_up(tmp_path: Path) -> None:
    values = static_of(
        {
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "advertised.listeners": "PLAINTEXT://example:19092",
            "metrics.listen": "127.0.0.1:9404",
            "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        }
    )
    brokers = broker_settings(values, 3)
    assert [each.integer("broker.id") for each in brokers] == [0, 1, 2]
    assert [each.text("listeners") for each in brokers] == [
        f"PLAINTEXT://127.0.0.1:{port}" for port in (9092, 9093, 9094)
    ]
    assert brokers[2].optional_text("advertised.listeners") == "PLAINTEXT://example:19094"
    assert brokers[1].text("metrics.listen") == "127.0.0.1:9405"
    assert brokers[1].texts("log.dirs") == (f"{tmp_path}/a/broker-1", f"{tmp_path}/b/broker-1")
    assert store_directory(values) == f"{tmp_path}/a/metadata"


def test_the_file_that_comes_with_kafka_makes_a_cluster(tmp_path: Path) -> None:
    values = static_of({**read_properties_file(STOCK_SERVER), "log.dirs": str(tmp_path)})
    brokers = broker_settings(values, 3)
    # That its controller would listen on a port between is of no account.
    assert [client_endpoints(each)[0].port for each in brokers] == [9092, 9093, 9094]
    advertised = [advertised_endpoints(each)["PLAINTEXT"] for each in brokers]
    assert [(each.host, each.port) for each in advertised] == [
        ("localhost", port) for port in (9092, 9093, 9094)
    ]


def test_topics_of_the_brokers_have_a_replica_on_each_up_to_the_setting() -> None:
    names = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")

    def factors(count: int, texts: dict[str, str]) -> list[int]:
        [first, *_] = broker_settings(static_of(texts), count)
        return [first.integer(name) for name in names]

    assert factors(2, {}) == [2, 2]
    assert factors(5, {}) == [3, 3]
    assert factors(2, {names[0]: "1"}) == [1, 2]


def test_the_first_id_can_be_chosen_under_either_name_and_free_ports_stay_free() -> None:
    for name in ("broker.id", "node.id"):
        values = static_of({name: "7", "listeners": "PLAINTEXT://127.0.0.1:0"})
        brokers = broker_settings(values, 2)
        assert [each.integer("broker.id") for each in brokers] == [7, 8]
        assert {each.text("listeners") for each in brokers} == {"PLAINTEXT://127.0.0.1:0"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"listeners": "PLAINTEXT://:65534"}, "no port 65536"),
        ({"metrics.listen": ":9094"}, "listen on port 9094"),
        ({"broker.id": "999"}, "above 1000"),
    ],
)
def test_brokers_do_not_get_into_each_other(texts: dict[str, str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        broker_settings(static_of(texts), 3)


def test_a_directory_belongs_to_one_broker_or_to_a_cluster(tmp_path: Path) -> None:
    values = static_of({"log.dirs": str(tmp_path)})
    refuse_directories_of_several(static_of({"log.dirs": str(tmp_path / "absent")}))
    refuse_directories_of_several(values)
    (tmp_path / "meta.properties").touch()
    with pytest.raises(SettingError, match="holds the data of one broker"):
        broker_settings(values, 3)
    (tmp_path / "broker-0").mkdir()
    (tmp_path / "broker-0" / "meta.properties").touch()
    with pytest.raises(
        SettingError, match="holds a cluster, with the data of a broker in broker-0"
    ):
        refuse_directories_of_several(values)
