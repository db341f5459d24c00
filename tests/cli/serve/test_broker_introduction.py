"""What `headwater serve` says while its brokers start."""

import pytest

from headwater.broker.settings.static_settings import static_of
from headwater.cli.serve.broker_introduction import introduction, store_text


@pytest.mark.parametrize(
    ("texts", "shared", "words"),
    [
        ({}, None, ""),
        ({}, "/data/metadata/metadata.sqlite", "shared by the brokers of this process"),
        (
            {"zookeeper.connect": "zoo:2181/orders", "zookeeper.session.timeout.ms": "6000"},
            None,
            "ZooKeeper zoo:2181/orders, sessions of 6 s",
        ),
    ],
)
def test_the_store_is_named(texts: dict[str, str], shared: str | None, words: str) -> None:
    text = store_text(static_of(texts), shared)
    assert words in text and bool(text) == bool(words)


def test_a_broker_by_itself_says_nothing_of_a_cluster() -> None:
    lines = list(introduction("1.2.3", [static_of({"log.dirs": "/data"})], "", 65_536))
    assert lines[:2] == ["Headwater 1.2.3", "  data        /data"]
    assert len(lines) == 3 and "survives a power failure" in lines[2]


def test_a_cluster_is_told_with_all_data_the_store_and_its_own_promise() -> None:
    brokers = [
        static_of({"log.dirs": f"/data/broker-{number}", "min.insync.replicas": "2"})
        for number in range(3)
    ]
    lines = list(introduction("1.2.3", brokers, "ZooKeeper zoo:2181", 65_536))
    assert lines[1:5] == [
        "  data        /data/broker-0",
        "  data        /data/broker-1",
        "  data        /data/broker-2",
        "  metadata    ZooKeeper zoo:2181",
    ]
    assert "every in-sync replica, of which there are 2 at least" in lines[5]


def test_a_low_limit_of_open_files_is_told() -> None:
    lines = list(introduction("1.2.3", [static_of({"log.dirs": "/data"})], "", 1024))
    assert lines[-1].startswith("  open files  1,024 at most, which leaves 288 for connections")
