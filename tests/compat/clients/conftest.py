"""Brokers and clients for the conformance tests, each shared as widely as it can be."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.testing.broker_process import wait_until
from tests.support.other_clients.brokers import BrokerUnderTest, broker_kinds, running_broker
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import AdminClient, Client
from tests.support.other_clients.known import ADMIN_CLIENTS, CLIENTS
from tests.support.other_clients.raw import RawConnection


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # kafka-python reads its schemas in a way that Python has meanwhile named a newer one for.
    ignored = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(ignored)


@pytest.fixture(scope="session", params=broker_kinds())
def broker_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """One for all tests: each has topics of its own."""
    with running_broker(broker_kind, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest, broker: BrokerUnderTest) -> Client:
    made: Client = request.param(broker.bootstrap)
    return made


@pytest.fixture(params=ADMIN_CLIENTS, ids=lambda kind: kind.name)
def admin(request: pytest.FixtureRequest, broker: BrokerUnderTest) -> AdminClient:
    made: AdminClient = request.param(broker.bootstrap)
    return made


@pytest.fixture(scope="session")
def confluent(broker: BrokerUnderTest) -> ConfluentClient:
    """For what a test needs beside the client that it is about."""
    return ConfluentClient(broker.bootstrap)


_numbers = itertools.count()


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names that no topic has, on any broker that these tests may run against."""
    return lambda: f"conformance-{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}"


@pytest.fixture
def make_topic(
    broker: BrokerUnderTest, confluent: ConfluentClient, new_name: Callable[[], str]
) -> Callable[..., str]:
    """`make_topic(partitions, **settings)`: settings with underscores for dots.

    A broker of Apache Kafka lists a topic a moment before it serves its partitions.
    """

    def make(partitions: int = 1, **settings: object) -> str:
        topic = new_name()
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        confluent.create_topic(topic, partitions, settings=named)
        with RawConnection(broker.bootstrap) as connection:
            wait_until(lambda: connection.serves(topic, partitions), f"{topic} is served")
        return topic

    return make
