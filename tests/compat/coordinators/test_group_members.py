"""Members come, go, die and come back, and each partition has one owner throughout."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import ClientError, Message
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import SHORT_SESSION_MS, GroupMember, Membership
from tests.support.other_clients.groups.known import REBALANCING
from tests.support.other_clients.groups.polling import PolledMember, partitions_of, wait_shared
from tests.support.other_clients.groups.process import MemberProcess
from tests.support.other_clients.groups.raw import describe
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]
Client = type[GroupMember]


@pytest.fixture(params=REBALANCING, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest) -> Client:
    kind: Client = request.param
    return kind


def fill(
    confluent: ConfluentClient, topic: str, partitions: int, count: int, first: int = 0
) -> None:
    """`count` records over the partitions in turn, with the numbers from `first` as values."""
    confluent.produce(
        topic, [Message(b"%d" % n, partition=n % partitions) for n in range(first, first + count)]
    )


def numbers(*members: PolledMember | MemberProcess) -> list[int]:
    return sorted(int(each.value or b"") for member in members for each in member.records)


def test_one_member_gets_everything(
    client: Client, join: Join, confluent: ConfluentClient, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(3)
    fill(confluent, topic, 3, 30)
    member = join(client, Membership(group, (topic,)))
    member.wait_records(30)
    assert numbers(member) == list(range(30))
    by_partition = [[each for each in member.records if each.partition == n] for n in range(3)]
    for records in by_partition:
        assert [each.offset for each in records] == list(range(10))
    assert member.owned == frozenset(partitions_of(topic, 3))


def test_members_join_and_leave(
    client: Client, join: Join, confluent: ConfluentClient, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    first = join(client, Membership(group, (topic,)))
    wait_shared([first], partitions)
    second = join(client, Membership(group, (topic,)))
    wait_shared([first, second], partitions, least=2)
    third = join(client, Membership(group, (topic,)))
    wait_shared([first, second, third], partitions)
    first.close()
    wait_shared([second, third], partitions, least=2)
    fill(confluent, topic, 4, 40)
    wait_until(lambda: len(second.records) + len(third.records) == 40, "all records have come")
    assert numbers(second, third) == list(range(40))
    second.close()
    wait_shared([third], partitions)


def test_more_members_than_partitions(
    client: Client, join: Join, make_topic: MakeTopic, group: str
) -> None:
    """One of them waits with nothing, and takes over when the other leaves."""
    topic = make_topic(1)
    members = [join(client, Membership(group, (topic,))) for _ in range(2)]
    wait_shared(members, [(topic, 0)], least=0)
    [owner] = [member for member in members if member.owned]
    [idle] = [member for member in members if not member.owned]
    owner.close()
    wait_shared([idle], [(topic, 0)])


def test_different_clients_in_one_group(
    join: Join, confluent: ConfluentClient, make_topic: MakeTopic, group: str
) -> None:
    """Whichever of them leads, the others understand what it has assigned."""
    topic = make_topic(6)
    members = [join(each, Membership(group, (topic,))) for each in REBALANCING]
    wait_shared(members, partitions_of(topic, 6), least=2)
    fill(confluent, topic, 6, 60)
    wait_until(lambda: sum(len(each.records) for each in members) == 60, "all records have come")
    assert numbers(*members) == list(range(60))
    members[0].close()
    wait_shared(members[1:], partitions_of(topic, 6), least=3)


def test_a_member_dies_and_comes_back(
    client: Client,
    broker: BrokerUnderTest,
    join: Join,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic(2)
    partitions = partitions_of(topic, 2)
    membership = Membership(group, (topic,), session_timeout_ms=SHORT_SESSION_MS)
    with MemberProcess(client.name, broker.bootstrap, membership) as mortal:
        wait_shared([mortal], partitions)
        fill(confluent, topic, 2, 20)
        wait_until(lambda: len(mortal.records) >= 20, "its records have come")
        survivor = join(client, membership)
        wait_shared([mortal, survivor], partitions)
        mortal.kill()
    # Nobody said that it left, so this takes as long as its session.
    wait_shared([survivor], partitions)
    fill(confluent, topic, 2, 20, first=20)
    wait_until(lambda: len(survivor.records) >= 20, "the survivor's records have come")
    # What the dead one had committed does not come again.
    assert numbers(survivor) == list(range(20, 40))
    survivor.call(lambda member: member.commit())
    with MemberProcess(client.name, broker.bootstrap, membership) as successor:
        wait_shared([successor, survivor], partitions)
        fill(confluent, topic, 2, 20, first=40)
        wait_until(
            lambda: len(survivor.records) + len(successor.records) >= 40, "the rest has come"
        )
        assert numbers(survivor, successor) == list(range(20, 60))
        successor.stop()
    wait_shared([survivor], partitions)


def test_a_static_member_comes_back_unnoticed(
    client: Client,
    join: Join,
    connection: RawConnection,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    steady = join(client, Membership(group, (topic,), instance_id="steady"))
    wait_shared([steady], partitions)
    restarted = join(client, Membership(group, (topic,), instance_id="restarted"))
    wait_shared([steady, restarted], partitions, least=2)
    had, seen = restarted.owned, list(steady.events)
    restarted.close()
    assert len(describe(connection, group).members) == 2
    again = join(client, Membership(group, (topic,), instance_id="restarted"))
    wait_shared([steady, again], partitions, least=2)
    assert again.owned == had
    assert steady.events == seen
    described = describe(connection, group)
    assert {each.group_instance_id for each in described.members} == {"steady", "restarted"}
    assert described.group_state == "Stable"


def test_a_second_member_of_the_same_name(join: Join, make_topic: MakeTopic, group: str) -> None:
    """Only confluent-kafka tells its user what the broker told it; the others try for good."""
    client = ConfluentMember
    topic = make_topic(1)
    membership = Membership(group, (topic,), instance_id="twin")
    first = join(client, membership)
    wait_shared([first], [(topic, 0)])
    second = join(client, membership)
    wait_until(lambda: first.error is not None, "the first is told")
    assert isinstance(first.error, ClientError)
    assert first.error.name == ErrorCode.FENCED_INSTANCE_ID.name
    wait_shared([second], [(topic, 0)])


@pytest.mark.parametrize("client", [ConfluentMember], indirect=True, ids=lambda kind: kind.name)
def test_cooperative_members_keep_what_stays_theirs(
    client: Client,
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic(6)
    partitions = partitions_of(topic, 6)
    membership = Membership(group, (topic,), assignors=("cooperative-sticky",))
    first = join(client, membership)
    wait_shared([first], partitions)
    second = join(client, membership)
    wait_shared([first, second], partitions, least=3)
    # Only what moved was ever taken away.
    revoked = [each.partitions for each in first.events if each.kind != "assigned"]
    assert frozenset().union(*revoked) == second.owned
    fill(confluent, topic, 6, 60)
    wait_until(lambda: len(first.records) + len(second.records) == 60, "all records have come")
    assert numbers(first, second) == list(range(60))
    assert describe(connection, group).protocol_data == "cooperative-sticky"
    second.close()
    wait_shared([first], partitions)
    taken = [each.partitions for each in first.events if each.kind != "assigned"]
    assert [each for each in taken[len(revoked) :] if each] == []
