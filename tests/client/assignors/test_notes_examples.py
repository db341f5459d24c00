"""The examples of assignments in the notes, as tables."""

from __future__ import annotations

import pytest

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import Assignor, MemberAssignment, MemberSubscription
from headwater.client.assignors.range_assignor import RangeAssignor
from headwater.client.assignors.round_robin_assignor import RoundRobinAssignor
from headwater.client.assignors.sticky_assignor import StickyAssignor


def partitions(text: str) -> list[TopicPartition]:
    """`t0p0、t0p1` as the notes write them."""
    names = [name for name in text.split("、") if name]
    return [TopicPartition(f"t{name[1]}", int(name[3])) for name in names]


def assigned(
    assignor: Assignor, counts: dict[str, int], wanted: dict[str, list[str]]
) -> dict[str, list[TopicPartition]]:
    subscriptions = {name: MemberSubscription(tuple(topics)) for name, topics in wanted.items()}
    dealt = assignor.assign(counts, subscriptions)
    return {name: sorted(assignment.partitions) for name, assignment in dealt.items()}


BOTH = {"C0": ["t0", "t1"], "C1": ["t0", "t1"]}
UNEQUAL = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}


def test_range_with_four_partitions_each_is_even() -> None:
    assert assigned(RangeAssignor(), {"t0": 4, "t1": 4}, BOTH) == {
        "C0": partitions("t0p0、t0p1、t1p0、t1p1"),
        "C1": partitions("t0p2、t0p3、t1p2、t1p3"),
    }


def test_range_with_three_partitions_each_overloads_the_first() -> None:
    assert assigned(RangeAssignor(), {"t0": 3, "t1": 3}, BOTH) == {
        "C0": partitions("t0p0、t0p1、t1p0、t1p1"),
        "C1": partitions("t0p2、t1p2"),
    }


def test_round_robin_with_equal_subscriptions_is_even() -> None:
    assert assigned(RoundRobinAssignor(), {"t0": 3, "t1": 3}, BOTH) == {
        "C0": partitions("t0p0、t0p2、t1p1"),
        "C1": partitions("t0p1、t1p0、t1p2"),
    }


def test_round_robin_with_unequal_subscriptions_is_not() -> None:
    assert assigned(RoundRobinAssignor(), {"t0": 1, "t1": 2, "t2": 3}, UNEQUAL) == {
        "C0": partitions("t0p0"),
        "C1": partitions("t1p0"),
        "C2": partitions("t1p1、t2p0、t2p1、t2p2"),
    }


def test_sticky_is_as_even_as_the_subscriptions_allow() -> None:
    assert assigned(StickyAssignor(), {"t0": 1, "t1": 2, "t2": 3}, UNEQUAL) == {
        "C0": partitions("t0p0"),
        "C1": partitions("t1p0、t1p1"),
        "C2": partitions("t2p0、t2p1、t2p2"),
    }


@pytest.mark.parametrize("gone", ["C0", "C1", "C2"])
def test_sticky_leaves_with_each_member_what_it_had(gone: str) -> None:
    """The two aims of the sticky strategy: even first, and as before as far as that allows."""
    counts = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    assignors = {name: StickyAssignor() for name in ("C0", "C1", "C2")}

    def rebalance(generation: int) -> dict[str, set[TopicPartition]]:
        subscriptions = {
            name: MemberSubscription(tuple(counts), user_data=each.subscription_user_data(counts))
            for name, each in assignors.items()
        }
        dealt: dict[str, MemberAssignment] = StickyAssignor().assign(counts, subscriptions)
        for name, each in assignors.items():
            each.on_assignment(dealt[name], generation)
        return {name: set(assignment.partitions) for name, assignment in dealt.items()}

    before = rebalance(1)
    assert before == {
        "C0": set(partitions("t0p0、t1p1、t3p0")),
        "C1": set(partitions("t0p1、t2p0、t3p1")),
        "C2": set(partitions("t1p0、t2p1")),
    }
    del assignors[gone]
    after = rebalance(2)
    assert all(before[name] <= after[name] for name in assignors)
    assert sorted(len(mine) for mine in after.values()) == [4, 4]
