"""Kafka's newest Java client: records, groups of both protocols, exactly-once copies, an admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.other_clients.brokers import HEADWATER, BrokerUnderTest, running_broker
from tests.support.other_clients.java_client import JavaClient, TaskFailedError

pytestmark = pytest.mark.kafka

MakeTopic = Callable[..., str]
PROTOCOLS = ("classic", "consumer")
COUNT = 200


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    with JavaClient(tmp_path_factory.mktemp("java") / "log") as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_exactly_once_copy(
    java: JavaClient,
    broker: BrokerUnderTest,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
    protocol: str,
) -> None:
    source, target, group = make_topic(3), make_topic(2), new_name()
    at = broker.bootstrap
    assert java.run("produce", at, source, str(COUNT)) == {"partitions": "3"}
    copied = java.run("copy", at, protocol, source, target, group, str(COUNT))
    assert copied == {"copied": str(COUNT), "committed": str(COUNT)}
    # What the aborted transaction wrote is in the topic too, and nobody sees it.
    found = java.run("consume", at, protocol, target, f"{group}-reader", str(COUNT))
    assert found["read"] == f"{COUNT} up to {COUNT - 1}"
    assert java.run("groups", at, group, source) == {
        "listed": "true",
        "offsets": str(COUNT),
        "altered": "1",
        "kept": "false",
        "again": "GroupIdNotFoundException",
    }


def test_topics(java: JavaClient, broker: BrokerUnderTest, new_name: Callable[[], str]) -> None:
    told = java.run("topics", broker.bootstrap, new_name())
    features = told.pop("features")
    assert told == {
        "partitions": "2",
        "retention": "7200000",
        "left": "0",
        "tiered": "-1 -1",
        "cordoned": "false",
        "producers": "1",
    }
    if broker.kind == HEADWATER:
        # No more than it has: a client would use the others.
        assert features == "[group.version, transaction.version]"


def test_a_share_consumer_is_told_that_there_are_no_share_groups(
    java: JavaClient, tmp_path: Path
) -> None:
    with (
        running_broker(HEADWATER, tmp_path) as broker,
        pytest.raises(TaskFailedError, match="UnsupportedVersionException"),
    ):
        java.run("share", broker.bootstrap, "orders", "sharers")
