"""What a group subscribes to grows, and what its members want differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.testing.broker_process import wait_until
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import ClientError, Message
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import QUICK_METADATA_MS, GroupMember, Membership
from tests.support.other_clients.groups.known import REBALANCING
from tests.support.other_clients.groups.polling import PolledMember, partitions_of, wait_shared
from tests.support.other_clients.groups.raw import describe
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]
Client = type[GroupMember]


@pytest.fixture(params=REBALANCING, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest) -> Client:
    kind: Client = request.param
    return kind


def test_a_pattern_finds_a_new_topic(
    client: Client,
    join: Join,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
    group: str,
) -> None:
    name = new_name()
    make_topic(1, f"other-{name}")
    first = make_topic(2, f"{name}-first")
    membership = Membership(group, pattern=f"{name}-.*", metadata_age_ms=QUICK_METADATA_MS)
    members = [join(client, membership) for _ in range(2)]
    wait_shared(members, partitions_of(first, 2))
    second = make_topic(2, f"{name}-second")
    wait_shared(members, partitions_of(first, 2) + partitions_of(second, 2), least=2)
    confluent.produce(second, [Message(b"found", partition=1)])
    wait_until(lambda: any(each.records for each in members), "the record has come")
    [record] = [record for each in members for record in each.records]
    assert record == (second, 1, 0, b"found")


def test_a_topic_grows(
    client: Client, join: Join, confluent: ConfluentClient, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(2)
    membership = Membership(group, (topic,), metadata_age_ms=QUICK_METADATA_MS)
    members = [join(client, membership) for _ in range(2)]
    wait_shared(members, partitions_of(topic, 2))
    confluent.grow_topic(topic, 4)
    wait_shared(members, partitions_of(topic, 4), least=2)
    confluent.produce(topic, [Message(b"new", partition=3)])
    wait_until(lambda: any(each.records for each in members), "the record has come")
    [record] = [record for each in members for record in each.records]
    assert record == (topic, 3, 0, b"new")


def test_members_of_different_topics(
    client: Client, join: Join, make_topic: MakeTopic, group: str
) -> None:
    shared, own = make_topic(2), make_topic(1)
    narrow = join(client, Membership(group, (shared,)))
    wide = join(client, Membership(group, (shared, own)))
    wait_shared([narrow, wide], [*partitions_of(shared, 2), (own, 0)])
    assert (own, 0) in wide.owned
    wide.close()
    wait_shared([narrow], partitions_of(shared, 2))


def test_the_vote(
    client: Client,
    join: Join,
    connection: RawConnection,
    make_topic: MakeTopic,
    group: str,
) -> None:
    """Only what all support can win, whatever others would rather have."""
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    flexible = join(client, Membership(group, (topic,), assignors=("range", "roundrobin")))
    wait_shared([flexible], partitions)
    assert describe(connection, group).protocol_data == "range"
    narrow = join(client, Membership(group, (topic,), assignors=("roundrobin",)))
    wait_shared([flexible, narrow], partitions, least=2)
    assert describe(connection, group).protocol_data == "roundrobin"


@pytest.mark.parametrize("client", [ConfluentMember], indirect=True, ids=lambda kind: kind.name)
def test_nothing_in_common(client: Client, join: Join, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(1)
    first = join(client, Membership(group, (topic,), assignors=("range",)))
    wait_shared([first], [(topic, 0)])
    other = join(client, Membership(group, (topic,), assignors=("roundrobin",)))
    wait_until(lambda: other.error is not None, "the other is refused")
    assert isinstance(other.error, ClientError)
    assert other.error.name == "INCONSISTENT_GROUP_PROTOCOL"
    first.check()
    assert first.owned == {(topic, 0)}
