"""Groups of our consumers with other people's, and with both protocols, on real brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import MemberAssignment, PlainAssignor, Subscriptions
from headwater.client.consumer.consumer import Consumer
from headwater.testing.broker_process import wait_until
from tests.support.brokers.clusters import KINDS, Cluster, running_cluster
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.headwater import HeadwaterMember
from tests.support.other_clients.groups.java import VerifiableMember
from tests.support.other_clients.groups.polling import PolledMember, wait_shared
from tests.support.other_clients.groups.process import MemberProcess

SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "100",
}
PARTITION_COUNT = 4
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}

Join = Callable[[Membership], PolledMember]


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"), SETTINGS)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    name = cluster.new_name("shared")
    ConfluentClient(cluster.bootstrap).create_topic(name, PARTITION_COUNT)
    return name


@pytest.fixture
def join(cluster: Cluster) -> Iterator[Join]:
    """Start one of ours, which is polled until it, or the test, ends."""
    members: list[PolledMember] = []

    def start(membership: Membership) -> PolledMember:
        members.append(PolledMember(HeadwaterMember, cluster.bootstrap, membership))
        return members[-1]

    yield start
    for member in members:
        member.close()


def partitions_of(topic: str) -> list[tuple[str, int]]:
    return [(topic, number) for number in range(PARTITION_COUNT)]


def produce(cluster: Cluster, topic: str, count: int) -> None:
    """So many records to each partition."""
    messages = [
        Message(b"%d" % number, partition=partition)
        for partition in range(PARTITION_COUNT)
        for number in range(count)
    ]
    ConfluentClient(cluster.bootstrap).produce(topic, messages)


# -- with Java's -----------------------------------------------------------------------------------


@pytest.mark.kafka
@pytest.mark.parametrize("java_leads", [pytest.param(True, marks=pytest.mark.full), False])
@pytest.mark.parametrize(
    "assignor",
    [
        pytest.param("range", marks=pytest.mark.full),
        pytest.param("roundrobin", marks=pytest.mark.full),
        "sticky",
        pytest.param("cooperative-sticky", marks=pytest.mark.full),
    ],
)
def test_one_group_of_javas_and_ours(
    cluster: Cluster, topic: str, join: Join, tmp_path: Path, assignor: str, java_leads: bool
) -> None:
    """Whoever leads reads what the other wants and has; and when the leader goes, all stays."""
    group = cluster.new_name("group")
    ours_membership = Membership(group, (topic,), assignors=(assignor,))
    flags = (
        "--assignment-strategy",
        f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[assignor]}",
    )
    everything = partitions_of(topic)
    ours: PolledMember | None = None
    if not java_leads:
        ours = join(ours_membership)
        wait_shared([ours], everything)
    with VerifiableMember(
        cluster.bootstrap, group, topic, "classic", tmp_path / "java.txt", *flags
    ) as java:
        if ours is None:
            wait_shared([java], everything)
            ours = join(ours_membership)
        wait_shared([java, ours], everything, least=2)
        before = ours.owned
        third = join(ours_membership)
        wait_shared([java, ours, third], everything)
        if "sticky" in assignor:
            assert ours.owned <= before, "what stays is what it had"
        java.stop()
    wait_shared([ours, third], everything, least=2)


# -- with both protocols ---------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_rolling_upgrade_to_the_consumer_protocol(
    cluster: Cluster, topic: str, join: Join, assignor: str
) -> None:
    """Every record is read, and none twice by who has committed it, while members are replaced."""
    group = cluster.new_name("group")
    everything = partitions_of(topic)

    def membership(protocol: Literal["classic", "consumer"]) -> Membership:
        return Membership(
            group, (topic,), assignors=(assignor,), protocol=protocol, auto_commit=True
        )

    old = [join(membership("classic")) for _ in range(2)]
    wait_shared(old, everything, least=2)
    produce(cluster, topic, 25)
    wait_until(lambda: sum(len(each.records) for each in old) >= 100, "the old ones have read")
    first = join(membership("consumer"))
    wait_shared([*old, first], everything)
    old[0].close()
    wait_shared([old[1], first], everything, least=2)
    produce(cluster, topic, 25)
    mixed = [*old, first]
    wait_until(lambda: sum(len(each.records) for each in mixed) >= 200, "both kinds have read")
    second = join(membership("consumer"))
    old[1].close()
    wait_shared([first, second], everything, least=2)
    produce(cluster, topic, 25)
    members = [*old, first, second]
    wait_until(lambda: sum(len(each.records) for each in members) >= 300, "the new ones have read")
    read = sorted((each.partition, each.offset) for one in members for each in one.records)
    assert read == [(partition, at) for partition in range(PARTITION_COUNT) for at in range(75)]


# -- members that die ------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_process_is_killed(
    cluster: Cluster, topic: str, join: Join, protocol: Literal["classic", "consumer"]
) -> None:
    membership = Membership(
        cluster.new_name("group"), (topic,), protocol=protocol, session_timeout_ms=1000
    )
    survivor = join(membership)
    with MemberProcess(HeadwaterMember.name, cluster.bootstrap, membership) as victim:
        wait_shared([survivor, victim], partitions_of(topic), least=2)
        victim.kill()
    wait_shared([survivor], partitions_of(topic))


# -- assignors of the user's own -------------------------------------------------------------------


class BroadcastAssignor(PlainAssignor):
    """The notes' example: every member gets all partitions of the topics that it wants."""

    name = "broadcast"

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        return {
            member_id: MemberAssignment(
                tuple(
                    TopicPartition(topic, number)
                    for topic in wanted.topics
                    for number in range(partition_counts.get(topic, 0))
                )
            )
            for member_id, wanted in subscriptions.items()
        }


def test_a_group_in_which_everybody_reads_everything(cluster: Cluster, topic: str) -> None:
    produce(cluster, topic, 5)
    settings: dict[str, object] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": cluster.new_name("group"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 200,
        "partition.assignment.strategy": [BroadcastAssignor()],
    }
    with Consumer(settings) as one, Consumer(settings) as two:
        read: dict[Consumer, set[tuple[int, int]]] = {one: set(), two: set()}
        for consumer in read:
            consumer.subscribe([topic])

        def all_is_read() -> bool:
            for consumer, seen in read.items():
                seen |= {(each.partition, each.offset) for each in consumer.poll(0.05)}
            return all(len(seen) == 5 * PARTITION_COUNT for seen in read.values())

        wait_until(all_is_read, "both have read everything")
        assert one.assignment() == two.assignment()
