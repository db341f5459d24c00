"""Brokers and clients for the conformance tests of groups and transactions.

Sessions may be short here, so that a test sees one end; all else is as it is by default.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.kafka.node import small_node
from tests.support.other_clients.brokers import (
    ADDRESS,
    HEADWATER,
    BrokerUnderTest,
    broker_kinds,
    running_broker,
)
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.known import MEMBERS
from tests.support.other_clients.groups.polling import PolledMember
from tests.support.other_clients.groups.raw import wait_for_coordinators
from tests.support.other_clients.raw import RawConnection

SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


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


@pytest.fixture(scope="session", params=broker_kinds())
def broker_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """One for all tests: each has topics and groups of its own."""
    settings = None if broker_kind == ADDRESS else SETTINGS
    with running_broker(broker_kind, tmp_path_factory.mktemp("broker"), settings) as running:
        wait_for_coordinators(running.bootstrap)
        yield running


@pytest.fixture
def fragile_broker(broker_kind: str, tmp_path: Path) -> Iterator[BrokerProcess | KafkaNode]:
    """One for this test alone, which it may stop, kill and start again."""
    if broker_kind == ADDRESS:
        pytest.skip("this test needs a broker that it can kill")
    node: AbstractContextManager[BrokerProcess | KafkaNode] = (
        BrokerProcess(tmp_path / "broker", settings=SETTINGS)
        if broker_kind == HEADWATER
        else small_node(tmp_path / "broker", SETTINGS)
    )
    with node as running:
        yield running


@pytest.fixture(scope="session")
def confluent(broker: BrokerUnderTest) -> ConfluentClient:
    """For what a test needs beside the client that it is about."""
    return ConfluentClient(broker.bootstrap)


@pytest.fixture
def connection(broker: BrokerUnderTest) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as opened:
        yield opened


@pytest.fixture(params=MEMBERS, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest) -> type[GroupMember]:
    kind: type[GroupMember] = request.param
    return kind


_numbers = itertools.count()


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names that nothing has, on any broker that these tests may run against."""
    return lambda: f"conformance-{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}"


@pytest.fixture
def group(new_name: Callable[[], str]) -> str:
    return new_name()


@pytest.fixture
def make_topic(
    broker: BrokerUnderTest, confluent: ConfluentClient, new_name: Callable[[], str]
) -> Callable[..., str]:
    """`make_topic(partitions, name)`: a topic that is served, under a new name unless given one."""

    def make(partitions: int = 1, name: str | None = None) -> str:
        topic = name or new_name()
        confluent.create_topic(topic, partitions)
        with RawConnection(broker.bootstrap) as connection:
            wait_until(lambda: connection.serves(topic, partitions), f"{topic} is served")
        return topic

    return make


@pytest.fixture
def join(broker: BrokerUnderTest) -> Iterator[Callable[..., PolledMember]]:
    """`join(client, membership)`: a member that is polled until it, or the test, ends."""
    members: list[PolledMember] = []

    def make(client: type[GroupMember], membership: Membership) -> PolledMember:
        members.append(PolledMember(client, broker.bootstrap, membership))
        return members[-1]

    yield make
    for member in members:
        member.close()
