"""Members of all clients that start while nobody can be sure who coordinates them.

Stable offsets are told by a coordinator that knows that it is one: not while ZooKeeper is silent
for longer than a session. Whoever asks meanwhile must ask again, until it is told.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, Protocol

import pytest

from headwater.client.producer.producer import Producer
from headwater.testing.broker_process import wait_until
from headwater.zookeeper.server import ZooKeeperServer
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS, SLOW_S
from tests.support.brokers.zookeeper import fresh_chroot, zookeeper_ensemble
from tests.support.other_clients.groups.aiokafka import AiokafkaMember
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.headwater import HeadwaterMember
from tests.support.other_clients.groups.java import VerifiableMember
from tests.support.other_clients.groups.polling import PolledMember

pytestmark = [pytest.mark.full, pytest.mark.kafka]

PARTITION_COUNT = 3
RECORD_COUNT = 30

#: kafka-python comes through too, but for the joins that it forgets: see `groups.known`.
CLIENTS: list[tuple[type[GroupMember], Literal["classic", "consumer"]]] = [
    (ConfluentMember, "classic"),
    (ConfluentMember, "consumer"),
    (HeadwaterMember, "classic"),
    (HeadwaterMember, "consumer"),
    (AiokafkaMember, "classic"),
]


class StartedMember(Protocol):
    def has_begun(self) -> bool:
        """Whether it has partitions, and so wants to know where to begin."""

    def read_count(self) -> int: ...


class StartedPython:
    def __init__(self, member: PolledMember) -> None:
        self._member = member

    def has_begun(self) -> bool:
        self._member.check()
        return bool(self._member.events)

    def read_count(self) -> int:
        self._member.check()
        return len(self._member.records)


class StartedJava:
    def __init__(self, member: VerifiableMember) -> None:
        self._member = member

    def has_begun(self) -> bool:
        self._member.check()
        return bool(self._member.owned)

    def read_count(self) -> int:
        self._member.check()
        return self._member.consumed()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with zookeeper_ensemble(tmp_path_factory.mktemp("zookeeper"), 1) as ensemble:
        yield ensemble.servers[0]


@pytest.fixture(scope="module")
def running(
    zookeeper: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadwaterCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    settings = {"offsets.topic.num.partitions": "3"}
    address = zookeeper.address + fresh_chroot()
    with HeadwaterCluster(directory, address, settings=settings) as cluster:
        yield cluster


def start_members(
    stack: ExitStack, cluster: HeadwaterCluster, topic: str, group: str, directory: Path
) -> dict[str, StartedMember]:
    """One of each client, in a group of its own."""
    members: dict[str, StartedMember] = {}
    for client, protocol in CLIENTS:
        name = f"{client.name}-{protocol}"
        membership = Membership(
            f"{group}-{name}", (topic,), protocol=protocol, isolation="read_committed"
        )
        polled = PolledMember(client, cluster.bootstrap, membership)
        members[name] = StartedPython(stack.enter_context(polled))
    settings = directory / "consumer.properties"
    settings.write_text("isolation.level=read_committed\n")
    for protocol in ("classic", "consumer"):
        name = f"java-{protocol}"
        java = VerifiableMember(
            cluster.bootstrap,
            f"{group}-{name}",
            topic,
            protocol,
            directory / f"{group}-{name}.txt",
            "--command-config",
            str(settings),
        )
        members[name] = StartedJava(stack.enter_context(java))
    return members


def write_records(cluster: HeadwaterCluster, topic: str) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"}) as producer:
        for number in range(RECORD_COUNT):
            producer.send(topic, b"%d" % number, partition=number % PARTITION_COUNT)


def wait_for_all(members: dict[str, StartedMember], cluster: HeadwaterCluster) -> None:
    def have_read() -> bool:
        return all(each.read_count() >= RECORD_COUNT for each in members.values())

    try:
        wait_until(have_read, "all members read", SLOW_S)
    except TimeoutError as late:
        read = {name: each.read_count() for name, each in members.items()}
        raise TimeoutError(f"{late}: {read}\n{cluster.logs()}") from None


def test_members_start_while_zookeeper_is_silent(
    cluster: HeadwaterCluster, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    topic = cluster.create_topic("silence", PARTITION_COUNT)
    write_records(cluster, topic)
    for name in ("warm", "up", "all"):
        cluster.coordinator_of_group(name)
    with ExitStack() as stack:
        zookeeper.pause()
        try:
            # Until no session can be alive for certain.
            time.sleep(cluster.session_s)
            members = start_members(stack, cluster, topic, "silence", tmp_path)
            wait_until(
                lambda: all(each.has_begun() for each in members.values()),
                "all members have partitions",
                SLOW_S,
            )
        finally:
            zookeeper.resume()
        wait_for_all(members, cluster)


@pytest.mark.parametrize("broker_id", BROKER_IDS)
def test_members_start_while_a_coordinator_stops(
    cluster: HeadwaterCluster, tmp_path: Path, broker_id: int
) -> None:
    topic = cluster.create_topic(f"stop-{broker_id}", PARTITION_COUNT)
    write_records(cluster, topic)
    with ExitStack() as stack:
        members = start_members(stack, cluster, topic, topic, tmp_path)
        wait_until(
            lambda: any(each.has_begun() for each in members.values()), "one has begun", SLOW_S
        )
        cluster.nodes[broker_id].stop()
        wait_for_all(members, cluster)
