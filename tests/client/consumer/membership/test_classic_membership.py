"""A member of a classic group joins and rebalances, request by request."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.assignors.consumer_protocol import (
    read_subscription,
)
from headwater.client.connection.cluster_connection import Lane
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
)
from headwater.wire.messages.sync_group import SyncGroupRequest
from tests.support.fakes.lone_member import (
    A0,
    A1,
    ASSIGNED,
    B0,
    COORDINATOR,
    REVOKED,
    Member,
    dealt,
    lead,
)

# -- joining ---------------------------------------------------------------------------------------


def test_a_member_id_is_handed_out_first() -> None:
    member = Member()
    member.subscribe("a")
    first = member.answer(
        JoinGroupRequest,
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given"),
    )
    second, ask = member.take(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", "given")
    assert ask.target == COORDINATOR and ask.lane is Lane.COORDINATION


def test_nobody_joins_who_does_not_poll() -> None:
    member = Member(has_polled=False)
    member.subscribe("a")
    assert member.look() == []
    member.membership.polled(member.now_s)
    first, _ = member.take(JoinGroupRequest)
    assert first.member_id == ""


def test_what_a_join_says() -> None:
    member = Member(
        ["range", "sticky"],
        {"group.instance.id": "i1", "client.rack": "r1", "max.poll.interval.ms": 70000},
    )
    member.subscribe("b", "a")
    request, ask = member.take(JoinGroupRequest)
    assert [each.name for each in request.protocols] == ["range", "sticky"]
    assert request.group_instance_id == "i1"
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45000, 70000)
    assert ask.timeout_s == 75.0, "the answer may take as long as a rebalance"
    subscription = read_subscription(request.protocols[0].metadata, None)
    assert (subscription.topics, subscription.rack_id) == (("a", "b"), "r1")


def test_a_follower_syncs_without_assignments_and_takes_over() -> None:
    member = Member()
    member.subscribe("a")
    member.join(generation=4)
    request, _ = member.take(SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.assignments) == (4, "me", [])
    assert request.protocol_name == "range"
    member.sync(A0)
    assert not member.membership.is_stable
    member.handle(ASSIGNED, A0)
    assert member.membership.is_stable
    assert member.membership.committer() == ("readers", 4, "me", None)


def test_the_leader_deals_out() -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"], "you": ["a", "b"]})
    assert dealt(member) == {"me": {A0}, "you": {A1, B0}}
    assert member.membership.group_topics == {"a", "b"}


def test_the_leader_asks_for_topics_that_only_others_want() -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"], "you": ["a", "new"]})
    assert member.refreshed == [{"a", "new"}]
    assert member.is_quiet()
    member.learn({"a": 2, "b": 1})
    assert member.refreshed == [{"a", "new"}] * 2, "that may have been an older question's answer"
    assert member.is_quiet()
    member.learn({"a": 2, "b": 1, "new": 1})
    assert dealt(member) == {"me": {A0}, "you": {A1, TopicPartition("new", 0)}}


def test_topics_that_do_not_exist_are_not_waited_for() -> None:
    member = Member()
    member.subscribe("a", "gone")
    lead(member, {"me": ["a", "gone"]})
    member.learn({"a": 2})
    member.learn({"a": 2})
    assert dealt(member) == {"me": {A0, A1}}


def test_the_leader_may_be_told_to_leave_it_as_it_is() -> None:
    member = Member(settings={"group.instance.id": "i1"})
    member.subscribe("a")
    lead(member, {"me": ["a"]}, skip_assignment=True)
    assert dealt(member) == {}


@pytest.mark.parametrize("counts", [{"a": 3, "b": 1}, {"b": 1}])
def test_the_leader_watches_the_topics(counts: dict[str, int]) -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"]})
    member.sync(A0, A1)
    member.handle(ASSIGNED, A0, A1)
    member.learn({"a": 2, "b": 9})
    assert member.membership.is_stable, "nobody subscribes to b"
    member.learn(counts)
    member.handle(REVOKED, A0, A1)
    assert member.take(JoinGroupRequest)[0].reason == (
        "the group's topics or their partitions have changed"
    )


def test_a_follower_does_not() -> None:
    member = Member()
    member.settle(A0, A1)
    member.learn({"a": 9})
    assert member.membership.is_stable


def test_a_pattern_is_looked_for_in_all_topics() -> None:
    member = Member()
    member.subscribe(pattern="a|new.*")
    assert member.is_quiet() and member.refreshed == [()]
    member.learn({"a": 2, "ab": 1, "b": 1})
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("a",)
    member.join()
    member.sync(A0)
    member.handle(ASSIGNED, A0)
    member.learn({"a": 2, "new-1": 1})
    member.handle(REVOKED, A0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("a", "new-1")


# -- rebalances ------------------------------------------------------------------------------------


def test_heartbeats_come_at_their_interval() -> None:
    member = Member()
    member.settle(A0)
    started_s = member.now_s
    for number in range(1, 4):
        member.beat()
        assert member.now_s == pytest.approx(started_s + 3 * number)


def test_an_eager_member_lets_go_of_everything_before_it_joins() -> None:
    member = Member()
    member.settle(A0, B0)
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert not member.membership.is_stable
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)  # They go on while the listener runs.
    member.handle(REVOKED, A0, B0)
    request, _ = member.take(JoinGroupRequest)
    assert request.member_id == "me"
    assert read_subscription(request.protocols[0].metadata, None).owned == frozenset()
    member.wait(10)
    assert [type(each) for each in member.look()] == [JoinGroupRequest], "heartbeats pause"


def test_a_cooperative_member_keeps_what_it_has_and_joins_twice() -> None:
    member = Member(["cooperative-sticky"])
    member.settle(A0, A1, protocol="cooperative-sticky")
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert member.membership.event is None
    request, _ = member.take(JoinGroupRequest)
    subscription = read_subscription(request.protocols[0].metadata, None)
    assert (subscription.owned, subscription.generation_id) == (frozenset({A0, A1}), 1)
    member.join(generation=2, protocol="cooperative-sticky")
    member.sync(A0, B0)
    member.handle(REVOKED, A1)
    member.handle(ASSIGNED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert request.reason == "partitions were let go of, so that others may have them"
    assert read_subscription(request.protocols[0].metadata, None).owned == {A0, B0}


def _deal_out(member: Member) -> None:
    """Lead a group of which `me` has all of `a`; the other one is to get a part of it."""
    member.settle(A0, A1, protocol="cooperative-sticky")
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    lead(
        member,
        {"me": ["a"], "other": ["a"]},
        owned={"me": (A0, A1)},
        generation_id=2,
        protocol_name="cooperative-sticky",
    )
    assert sorted(map(len, dealt(member).values())) == [0, 1]


def test_partitions_that_nobody_lets_go_of_are_dealt_out_anew() -> None:
    member = Member(["cooperative-sticky"], {"session.timeout.ms": 9_000})
    _deal_out(member)
    # The leader keeps what it has: say, it was the other one, now back, who was to let go.
    member.sync(A0, A1)
    member.handle(ASSIGNED)
    for _ in range(2):
        member.beat()
        assert member.membership.is_stable
    request = member.wait_for(JoinGroupRequest)
    assert request.reason == "partitions were left to nobody"


def test_partitions_that_were_let_go_of_are_not_dealt_out_twice() -> None:
    member = Member(["cooperative-sticky"], {"session.timeout.ms": 9_000})
    _deal_out(member)
    member.sync(A0)
    member.handle(REVOKED, A1)
    member.handle(ASSIGNED)
    lead(
        member,
        {"me": ["a"], "other": ["a"]},
        owned={"me": (A0,)},
        generation_id=3,
        protocol_name="cooperative-sticky",
    )
    assert sorted(map(len, dealt(member).values())) == [1, 1]
    member.sync(A0)
    member.handle(ASSIGNED)
    for _ in range(5):
        member.beat()
    assert member.membership.is_stable


@pytest.mark.parametrize("is_gap", [True, False])
def test_a_leader_that_was_restarted_deals_out_what_it_finds_with_nobody(is_gap: bool) -> None:
    settings = {"group.instance.id": "i1", "session.timeout.ms": 9_000}
    member = Member(["cooperative-sticky"], settings)
    member.subscribe("a")
    lead(
        member,
        {"me": ["a"], "other": ["a"]},
        owned={} if is_gap else {"other": (A1,)},
        protocol_name="cooperative-sticky",
        skip_assignment=True,
    )
    member.sync(A0)
    member.handle(ASSIGNED, A0)
    for _ in range(2):
        member.beat()
    assert member.membership.is_stable
    if is_gap:
        assert member.wait_for(JoinGroupRequest).reason == "partitions were left to nobody"
    else:
        member.beat()
        member.beat()
        assert member.membership.is_stable


def test_a_cooperative_member_lets_go_of_topics_it_does_not_want_any_more() -> None:
    member = Member(["cooperative-sticky"])
    member.settle(A0, B0, protocol="cooperative-sticky")
    member.subscribe("a")
    member.handle(REVOKED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).owned == {A0}


def test_a_subscription_that_changes_while_it_joins_is_joined_with_again() -> None:
    member = Member()
    member.subscribe("a", "b")
    member.join()
    member.subscribe("b")
    member.sync(A0, B0)
    member.handle(ASSIGNED, B0)
    member.handle(REVOKED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("b",)


def test_a_rebalance_can_be_enforced() -> None:
    member = Member()
    member.settle(A0)
    member.membership.enforce_rebalance("I want it", member.now_s)
    member.handle(REVOKED, A0)
    assert member.take(JoinGroupRequest)[0].reason == "I want it"
