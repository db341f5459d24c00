"""A broker, clients and topics for the tests of delayed delivery, which Kafka does not have."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.other_clients.brokers import HEADWATER, BrokerUnderTest, running_broker
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.groups.raw import wait_for_coordinators
from tests.support.other_clients.raw import RawConnection


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # kafka-python reads its schemas in a way that Python has meanwhile named a newer one for.
    # Its sockets it leaves to the garbage collector, which meets them in the midst of other tests.
    ignored = pytest.mark.filterwarnings(
        "ignore:(read|open)_text is deprecated:DeprecationWarning",
        "ignore:unclosed <socket:ResourceWarning",
    )
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(ignored)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """One for all tests: each has topics of its own."""
    with running_broker(HEADWATER, tmp_path_factory.mktemp("broker")) as running:
        wait_for_coordinators(running.bootstrap)
        yield running


@pytest.fixture
def fragile_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """One for this test alone, which it may kill and start again."""
    with BrokerProcess(tmp_path / "broker") as running:
        yield running


@pytest.fixture(scope="session")
def confluent(broker: BrokerUnderTest) -> ConfluentClient:
    """For what a test needs beside the client that it is about."""
    return ConfluentClient(broker.bootstrap)


_numbers = itertools.count()


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names that nothing has."""
    return lambda: f"delayed-{next(_numbers)}"


@pytest.fixture
def make_topic(
    broker: BrokerUnderTest, confluent: ConfluentClient, new_name: Callable[[], str]
) -> Callable[..., str]:
    """`make_topic(partitions, **settings)`: settings with underscores for dots."""

    def make(partitions: int = 1, **settings: object) -> str:
        topic = new_name()
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        confluent.create_topic(topic, partitions, settings=named)
        with RawConnection(broker.bootstrap) as connection:
            wait_until(lambda: connection.serves(topic, partitions), f"{topic} is served")
        return topic

    return make
