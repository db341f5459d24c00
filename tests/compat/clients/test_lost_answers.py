"""A producer whose answers get lost sends again, and its records are stored once, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.testing.broker_process import free_port
from tests.support.other_clients.brokers import ADDRESS, BrokerUnderTest, running_broker
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Client, Message, Sending
from tests.support.other_clients.known import CLIENTS
from tests.support.proxies.lost_answers import AnswerLosingProxy

# Two requests at least for clients that put a megabyte into one, and many for the others.
VALUES = [b"%05d" % number + b"." * 20_000 for number in range(75)]


@pytest.fixture(scope="module")
def proxied(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrokerUnderTest, AnswerLosingProxy]]:
    """A broker that names a proxy as its address, and the proxy in front of it."""
    if broker_kind == ADDRESS:
        pytest.skip("this test needs a broker with settings of its own")
    port = free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with running_broker(broker_kind, tmp_path_factory.mktemp("proxied"), settings) as broker:
        broker_port = int(broker.bootstrap.rpartition(":")[2])
        with AnswerLosingProxy(port, broker_port) as proxy:
            yield broker, proxy


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.name)
def test_each_record_is_stored_once(
    kind: type[Client], proxied: tuple[BrokerUnderTest, AnswerLosingProxy]
) -> None:
    _, proxy = proxied
    client: Client = kind(proxy.bootstrap)
    topic = f"lost-answers-{client.name}"
    ConfluentClient(proxy.bootstrap).create_topic(topic)
    proxy.count_anew()
    client.produce(topic, [Message(value) for value in VALUES], Sending(is_idempotent=True))
    assert proxy.lost_count > 0, "no answer was lost, so nothing was shown"
    assert [record.value for record in client.consume(topic, 0)] == VALUES


def test_without_idempotence_they_are_stored_again(
    proxied: tuple[BrokerUnderTest, AnswerLosingProxy],
) -> None:
    """Which shows that the proxy does what the test above needs of it."""
    _, proxy = proxied
    client = ConfluentClient(proxy.bootstrap)
    client.create_topic("stored-again")
    proxy.count_anew()
    client.produce("stored-again", [Message(value) for value in VALUES])
    found = [record.value for record in client.consume("stored-again", 0)]
    assert len(found) > len(VALUES) and set(found) == set(VALUES)
