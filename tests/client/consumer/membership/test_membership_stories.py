"""What groups of our members go through, with the real coordinator in virtual time.

The five triggers of a rebalance in the notes come first: a member joins, a member dies, a member
leaves, the coordinator changes, the topics change.
"""

from __future__ import annotations

from typing import Any

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.consumer.membership.membership import RebalanceKind, Subscription
from tests.support.worlds.member_world import GROUP, FakeConsumer, MemberWorld

A = [TopicPartition("a", number) for number in range(4)]

KINDS: dict[str, dict[str, Any]] = {
    "eager": {"assignors": ["range"]},
    "cooperative": {"assignors": ["cooperative-sticky"]},
    "consumer": {"protocol": "consumer"},
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def group_of_two(kind: str) -> tuple[MemberWorld, FakeConsumer, FakeConsumer]:
    world = MemberWorld(1, {"a": 4})
    members = [world.start(name, ["a"], **KINDS[kind]) for name in ("one", "two")]
    world.run_until(lambda: world.is_settled() and all(len(each.owned) == 2 for each in members))
    return world, members[0], members[1]


def test_a_member_joins(kind: str) -> None:
    world, one, two = group_of_two(kind)
    three = world.start("three", ["a"], **KINDS[kind])
    world.run_until(lambda: world.is_settled() and len(three.owned) > 0)
    assert sorted([len(one.owned), len(two.owned), len(three.owned)]) == [1, 1, 2]


def test_a_member_dies(kind: str) -> None:
    world, one, two = group_of_two(kind)
    two.kill()
    died_s = world.network.now_s
    world.run_until(lambda: world.is_settled() and one.owned == set(A))
    session_s = 45 if kind == "consumer" else 10
    assert session_s - 6 < world.network.now_s - died_s < session_s + 6


def test_a_member_leaves(kind: str) -> None:
    world, one, two = group_of_two(kind)
    left = two.close()
    left_s = world.network.now_s
    world.run_until(lambda: world.is_settled() and one.owned == set(A))
    assert left.is_done and world.network.now_s - left_s < 9, "nobody waits for a session's end"


def test_the_coordinator_changes(kind: str) -> None:
    world, one, two = group_of_two(kind)
    before = (set(one.owned), set(two.owned))
    for _ in range(3):
        world.network.fail_over()
        world.run(20_000)
    world.settle()
    assert (one.owned, two.owned) == before
    assert all(each[0] is RebalanceKind.ASSIGNED for each in one.history[-1:])


def test_the_topics_change(kind: str) -> None:
    world, one, two = group_of_two(kind)
    world.coordinator.set_topics({"a": 8})
    world.run_until(lambda: world.is_settled() and len(one.owned) == len(two.owned) == 4)


def test_a_topic_is_deleted_and_comes_again(kind: str) -> None:
    world, one, two = group_of_two(kind)
    one.reads = two.reads = False
    world.coordinator.set_topics({"a": None})
    world.run_until(lambda: not one.owned and not two.owned)
    world.coordinator.set_topics({"a": 2})
    world.run_until(lambda: world.is_settled() and len(one.owned) == len(two.owned) == 1)


# -- what members keep, and what they lose ---------------------------------------------------------


def interruptions(member: FakeConsumer, since: int) -> set[TopicPartition]:
    return {
        each
        for kind, partitions in member.history[since:]
        if kind is not RebalanceKind.ASSIGNED
        for each in partitions
    }


@pytest.mark.parametrize(("kind", "is_interrupted"), [("eager", True), ("cooperative", False)])
def test_only_an_eager_group_stops_for_a_rebalance(kind: str, is_interrupted: bool) -> None:
    world, one, two = group_of_two(kind)
    before = {each.name: (set(each.owned), len(each.history)) for each in (one, two)}
    three = world.start("three", ["a"], **KINDS[kind])
    world.run_until(lambda: world.is_settled() and len(three.owned) > 0)
    for member in (one, two):
        owned, event_count = before[member.name]
        kept = owned & member.owned
        assert kept, "somebody keeps something, or there is nothing to see"
        assert bool(kept & interruptions(member, event_count)) is is_interrupted


def test_who_does_not_poll_loses_its_partitions_and_gets_them_back(kind: str) -> None:
    world, one, two = group_of_two(kind)
    two.polls = False
    world.run_until(lambda: one.owned == set(A))
    assert two.owned, "it has not heard of it, since it does not poll"
    two.polls = True
    world.run_until(lambda: world.is_settled() and len(two.owned) == 2)
    assert RebalanceKind.LOST in [each for each, _ in two.history]


def test_a_static_member_comes_back_unnoticed(kind: str) -> None:
    world = MemberWorld(1, {"a": 4})
    one = world.start("one", ["a"], instance_id="i1", **KINDS[kind])
    two = world.start("two", ["a"], instance_id="i2", **KINDS[kind])
    world.run_until(lambda: world.is_settled() and len(one.owned) == len(two.owned) == 2)
    owned, event_count = set(two.owned), len(one.history)
    two.close()
    world.run(5000)
    back = world.start("back", ["a"], instance_id="i2", **KINDS[kind])
    world.run_until(lambda: world.is_settled() and back.owned == owned)
    assert not interruptions(one, event_count)


def test_the_second_of_two_with_one_instance_id_wins_in_a_classic_group() -> None:
    world = MemberWorld(1, {"a": 4})
    first = world.start("first", ["a"], instance_id="i1")
    world.settle()
    second = world.start("second", ["a"], instance_id="i1")
    world.run_until(lambda: not first.owned and second.owned == set(A))
    failure = first.membership.failure
    assert failure is not None and failure.code is ErrorCode.FENCED_INSTANCE_ID
    assert first.history[-1][0] is RebalanceKind.LOST


def test_the_first_of_two_with_one_instance_id_stays_in_a_consumer_group() -> None:
    world = MemberWorld(1, {"a": 4})
    first = world.start("first", ["a"], instance_id="i1", protocol="consumer")
    world.settle()
    second = world.start("second", ["a"], instance_id="i1", protocol="consumer")
    world.run_until(lambda: second.membership.failure is not None)
    failure = second.membership.failure
    assert failure is not None and failure.code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert first.owned == set(A)


def test_members_without_a_common_assignor_cannot_meet() -> None:
    world = MemberWorld(1, {"a": 4})
    one = world.start("one", ["a"], assignors=["range"])
    world.settle()
    two = world.start("two", ["a"], assignors=["sticky"])
    world.run_until(lambda: two.membership.failure is not None)
    failure = two.membership.failure
    assert failure is not None and failure.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "partition.assignment.strategy" in str(failure)
    assert one.owned == set(A)


def test_a_pattern_finds_topics_that_come_later(kind: str) -> None:
    world = MemberWorld(1, {"a1": 1, "other": 1})
    member = world.start("one", pattern="a.*", **KINDS[kind])
    world.run_until(lambda: member.owned == {TopicPartition("a1", 0)})
    world.coordinator.set_topics({"a2": 2, "ba": 1})
    wanted = {TopicPartition("a1", 0), TopicPartition("a2", 0), TopicPartition("a2", 1)}
    world.run_until(lambda: member.owned == wanted)


def test_unsubscribing_and_subscribing_again(kind: str) -> None:
    world, one, two = group_of_two(kind)
    two.membership.subscribe(Subscription(), world.network.now_s)
    two.owned.clear()
    two.positions.clear()
    world.run_until(lambda: one.owned == set(A))
    two.subscribe(Subscription(frozenset({"a"})))
    world.run_until(lambda: world.is_settled() and len(one.owned) == len(two.owned) == 2)


# -- moving a group to the other protocol ----------------------------------------------------------


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize(("before", "after"), [("classic", "consumer"), ("consumer", "classic")])
def test_a_rolling_upgrade_and_back(assignor: str, before: str, after: str) -> None:
    """One by one members restart with the other protocol; the group reads on all the while."""
    world = MemberWorld(1, {"a": 4})
    old = [world.start(f"old-{n}", ["a"], protocol=before, assignors=[assignor]) for n in range(2)]
    world.run_until(lambda: world.is_settled() and all(len(each.owned) == 2 for each in old))
    new: list[FakeConsumer] = []
    for member in old:
        member.close()
        new.append(world.start(f"new-{len(new)}", ["a"], protocol=after, assignors=[assignor]))
        world.run_until(
            lambda: world.is_settled() and all(len(each.owned) == 2 for each in world.alive())
        )
        world.run(5000)
    group = world.coordinator.shard.groups.find(GROUP)
    assert type(group).__name__ == ("ConsumerGroup" if after == "consumer" else "ClassicGroup")
    assert sorted(world.network.committed) == A
