"""A topic that nobody created is there once it is used, unless that is switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.other_clients.brokers import BrokerUnderTest, running_broker
from tests.support.other_clients.contract import Client, ClientError, Message, Sending

NewName = Callable[[], str]


@pytest.fixture(scope="session")
def strict_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    settings = {"auto.create.topics.enable": "false"}
    with running_broker(broker_kind, tmp_path_factory.mktemp("strict"), settings) as running:
        yield running


@pytest.fixture(scope="session")
def generous_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    settings = {"num.partitions": "3"}
    with running_broker(broker_kind, tmp_path_factory.mktemp("generous"), settings) as running:
        yield running


def test_producing_creates(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.produce(topic, [Message(b"first")])
    assert client.partition_counts()[topic] == 1
    assert [record.value for record in client.consume(topic, "earliest")] == [b"first"]


def test_as_many_partitions_as_configured(
    client: Client, generous_broker: BrokerUnderTest, new_name: NewName
) -> None:
    there: Client = type(client)(generous_broker.bootstrap)
    topic = new_name()
    there.produce(topic, [Message(b"first")])
    assert there.partition_counts()[topic] == 3


def test_switched_off(client: Client, strict_broker: BrokerUnderTest, new_name: NewName) -> None:
    there: Client = type(client)(strict_broker.bootstrap)
    topic = new_name()
    with pytest.raises(ClientError):
        there.produce(topic, [Message(b"first")], Sending(timeout_s=1))
    assert topic not in there.partition_counts()


@pytest.mark.parametrize("name", ["not allowed", "x" * 250])
def test_names_that_are_not_allowed(name: str, client: Client) -> None:
    with pytest.raises(ClientError):
        client.produce(name, [Message(b"first")], Sending(timeout_s=1))
    assert name not in client.partition_counts()
