"""Groups to whose members the broker itself assigns partitions (KIP-848), and moves to and fro."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from headwater.wire.messages.list_groups import ListGroupsRequest
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.polling import PolledMember, partitions_of, wait_shared
from tests.support.other_clients.groups.process import MemberProcess
from tests.support.other_clients.groups.raw import commit, committed
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]


def membership(group: str, *topics: str, **more: Any) -> Membership:
    return Membership(group, topics, protocol="consumer", **more)


def group_type(connection: RawConnection, group: str) -> str:
    listed = connection.ask(ListGroupsRequest(), 5).groups
    [found] = [each for each in listed if each.group_id == group]
    kind: str = found.group_type
    return kind.lower()


def describe(connection: RawConnection, group: str) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    [described] = connection.ask(request, 1).groups
    return described


def heartbeat(connection: RawConnection, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    answer: ConsumerGroupHeartbeatResponse = connection.ask(
        ConsumerGroupHeartbeatRequest(**fields), 1
    )
    return answer


def test_members_join_and_leave(
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    topic = make_topic(6)
    partitions = partitions_of(topic, 6)
    first = join(ConfluentMember, membership(group, topic))
    wait_shared([first], partitions)
    assert group_type(connection, group) == "consumer"
    second = join(ConfluentMember, membership(group, topic))
    wait_shared([first, second], partitions, least=3)
    # Only what moved was taken away.
    revoked = [each.partitions for each in first.events if each.kind == "revoked"]
    assert frozenset().union(*revoked) == second.owned
    confluent.produce(topic, [Message(b"%d" % n, partition=n % 6) for n in range(60)])
    wait_until(lambda: len(first.records) + len(second.records) == 60, "all records have come")
    first.call(lambda each: each.commit())
    assert {committed(connection, group, *each) for each in first.owned} == {(10, 0)}
    described = describe(connection, group)
    assert (described.group_state, described.assignor_name) == ("Stable", "uniform")
    assert described.group_epoch == described.assignment_epoch
    assert [each.member_epoch for each in described.members] == [described.group_epoch] * 2
    assert {each.client_id for each in described.members} == {"rdkafka"}
    second.close()
    wait_shared([first], partitions)


def test_a_member_dies(
    broker: BrokerUnderTest, join: Join, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    survivor = join(ConfluentMember, membership(group, topic))
    with MemberProcess(ConfluentMember.name, broker.bootstrap, membership(group, topic)) as mortal:
        wait_shared([mortal, survivor], partitions, least=2)
        mortal.kill()
    wait_shared([survivor], partitions)


def test_a_static_member_comes_back(join: Join, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(4)
    partitions = partitions_of(topic, 4)
    steady = join(ConfluentMember, membership(group, topic, instance_id="steady"))
    restarted = join(ConfluentMember, membership(group, topic, instance_id="restarted"))
    wait_shared([steady, restarted], partitions, least=2)
    had, seen = restarted.owned, list(steady.events)
    restarted.close()
    again = join(ConfluentMember, membership(group, topic, instance_id="restarted"))
    wait_shared([steady, again], partitions, least=2)
    assert again.owned == had
    assert steady.events == seen


def test_a_pattern_and_a_growing_topic(
    join: Join,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
    group: str,
) -> None:
    """The broker itself finds topics; Apache Kafka takes up to ten seconds for it."""
    name = new_name()
    first = make_topic(2, f"{name}-first")
    wide = Membership(group, pattern=f"{name}-.*", protocol="consumer")
    members = [join(ConfluentMember, wide) for _ in range(2)]
    wait_shared(members, partitions_of(first, 2))
    confluent.grow_topic(first, 4)
    wait_shared(members, partitions_of(first, 4), least=2)
    second = make_topic(2, f"{name}-second")
    wait_shared(members, partitions_of(first, 4) + partitions_of(second, 2), least=3)


def test_from_the_classic_protocol_and_back(
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    group: str,
) -> None:
    """Members of both kinds share a group while it is moved, and no partition is without owner."""
    topic = make_topic(6)
    partitions = partitions_of(topic, 6)
    # Not the sticky one: what librdkafka's adds to an assignment for its own use would be lost, so
    # such a group is not moved.
    classic = Membership(group, (topic,), assignors=("range",))
    old = [join(ConfluentMember, classic) for _ in range(2)]
    wait_shared(old, partitions, least=3)
    confluent.produce(topic, [Message(b"%d" % n, partition=n % 6) for n in range(60)])
    wait_until(lambda: sum(len(each.records) for each in old) == 60, "all records have come")
    for each in old:
        each.call(lambda member: member.commit())
    assert group_type(connection, group) == "classic"

    new = join(ConfluentMember, membership(group, topic))
    wait_shared([*old, new], partitions, least=2)
    assert group_type(connection, group) == "consumer"
    types = sorted(each.member_type for each in describe(connection, group).members)
    assert types == [0, 0, 1]
    old[0].close()
    wait_shared([old[1], new], partitions, least=3)
    old[1].close()
    wait_shared([new], partitions)
    assert new.records == []

    back = join(ConfluentMember, classic)
    wait_shared([new, back], partitions, least=3)
    new.close()
    wait_shared([back], partitions)
    wait_until(lambda: group_type(connection, group) == "classic", "the group is classic again")
    confluent.produce(topic, [Message(b"last")])
    assert [each.value for each in back.wait_records(1)] == [b"last"]


def test_what_members_are_told(
    connection: RawConnection, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(2)
    topic_id = connection.topic_id(topic)
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    joining: dict[str, Any] = {
        "group_id": group,
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    joined = heartbeat(connection, member_id=one, **joining)
    # A group begins with 1; since Kafka 4.3 that is before its first member.
    first = joined.member_epoch
    assert (joined.error_code, joined.member_id) == (0, one) and first in (1, 2)
    assert joined.heartbeat_interval_ms == 200
    assert joined.assignment is not None
    [assigned] = joined.assignment.topic_partitions
    assert (assigned.topic_id, sorted(assigned.partitions)) == (topic_id, [0, 1])

    def beat(epoch: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
        return heartbeat(connection, group_id=group, member_id=one, member_epoch=epoch, **more)

    owned = [TopicPartitions(topic_id=topic_id, partitions=[0, 1])]
    settled = beat(first, topic_partitions=owned)
    assert (settled.error_code, settled.member_epoch) == (0, first)
    assert beat(first + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    for wrong, code in (
        ({"member_id": two, "member_epoch": first}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": two, **joining, "server_assignor": "none"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"member_id": two, **joining, "rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        (
            {"member_id": two, **joining, "subscribed_topic_names": None},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {
                "member_id": two,
                **joining,
                "subscribed_topic_names": None,
                "subscribed_topic_regex": "(",
            },
            ErrorCode.INVALID_REGULAR_EXPRESSION,
        ),
    ):
        fields: dict[str, Any] = {"group_id": group, **wrong}
        assert heartbeat(connection, **fields).error_code == code, wrong
    static = {**joining, "group_id": f"{group}-static", "instance_id": "static"}
    assert heartbeat(connection, member_id=one, **static).error_code == 0
    in_use = heartbeat(connection, member_id=two, **static)
    assert in_use.error_code == ErrorCode.UNRELEASED_INSTANCE_ID

    # Commits name the member's epoch.
    assert commit(connection, group, topic, 1, first, one) == 0
    assert commit(connection, group, topic, 1, 0, one) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(connection, group, topic, 1, first, two) == ErrorCode.UNKNOWN_MEMBER_ID

    # A second member: the first must give up a partition before the second gets it.
    other = heartbeat(connection, member_id=two, **joining)
    assert (other.error_code, other.member_epoch) == (0, first + 1)
    assert other.assignment is not None and other.assignment.topic_partitions == []
    told = beat(first)
    assert told.member_epoch == first and told.assignment is not None
    [kept] = told.assignment.topic_partitions
    assert len(kept.partitions) == 1
    revoked = beat(first, topic_partitions=[kept])
    assert (revoked.error_code, revoked.member_epoch) == (0, first + 1)
    got = heartbeat(connection, group_id=group, member_id=two, member_epoch=first + 1)
    assert got.assignment is not None
    [given] = got.assignment.topic_partitions
    assert sorted([*given.partitions, *kept.partitions]) == [0, 1]
    assert beat(-1).member_epoch == -1
    assert [each.member_id for each in describe(connection, group).members] == [two]
