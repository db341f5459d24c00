"""What holds for every assignment, whatever the topics, members and subscriptions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import Assignor, MemberAssignment, MemberSubscription
from headwater.client.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from headwater.client.assignors.range_assignor import RangeAssignor
from headwater.client.assignors.round_robin_assignor import RoundRobinAssignor
from headwater.client.assignors.sticky_assignor import StickyAssignor
from tests.support.tiers import rounds

TOPICS = ["a", "b", "c", "d"]
MEMBERS = [f"m{number}" for number in range(8)]

counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
subscriptions_of = st.dictionaries(
    st.sampled_from(MEMBERS),
    st.sets(st.sampled_from(TOPICS), min_size=1).map(lambda topics: tuple(sorted(topics))),
    min_size=1,
)
assignors = st.sampled_from(
    [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]
)
many = settings(max_examples=rounds(30, 2000), deadline=None)

Owned = dict[str, set[TopicPartition]]


def deal(
    assignor: Assignor, counts: Mapping[str, int], wanted: Mapping[str, tuple[str, ...]]
) -> Owned:
    return as_sets(
        assignor.assign(counts, {name: MemberSubscription(wanted[name]) for name in wanted})
    )


def as_sets(dealt: Mapping[str, MemberAssignment]) -> Owned:
    assert all(len(each.partitions) == len(set(each.partitions)) for each in dealt.values())
    return {name: set(assignment.partitions) for name, assignment in dealt.items()}


def check_complete(
    owned: Owned, counts: Mapping[str, int], wanted: Mapping[str, tuple[str, ...]]
) -> None:
    """Every partition that somebody wants has one owner, who wants it."""
    assert owned.keys() == wanted.keys()
    assert all(topic in wanted[name] for name, mine in owned.items() for topic, _ in mine)
    all_topics = {topic for topics in wanted.values() for topic in topics}
    expected = sorted(
        TopicPartition(topic, number)
        for topic in all_topics
        for number in range(counts.get(topic, 0))
    )
    assert sorted(each for mine in owned.values() for each in mine) == expected


def is_most_even(owned: Owned, wanted: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether no chain of members can hand a partition on to one with two fewer."""
    for start in owned:
        reached, ring = {start}, [start]
        while ring:
            giver = ring.pop()
            topics = {topic for topic, _ in owned[giver]}
            for taker in owned.keys() - reached:
                if topics & set(wanted[taker]):
                    if len(owned[start]) - len(owned[taker]) >= 2:
                        return False
                    reached.add(taker)
                    ring.append(taker)
    return True


@many
@given(assignors, counts_of, subscriptions_of)
def test_every_partition_has_one_owner_who_wants_it(
    make: type[RangeAssignor], counts: dict[str, int], wanted: dict[str, tuple[str, ...]]
) -> None:
    check_complete(deal(make(), counts, wanted), counts, wanted)


@many
@given(assignors, counts_of, subscriptions_of)
def test_the_order_in_which_members_are_told_makes_no_difference(
    make: type[RangeAssignor], counts: dict[str, int], wanted: dict[str, tuple[str, ...]]
) -> None:
    backwards = dict(reversed(wanted.items()))
    assert deal(make(), counts, wanted) == deal(make(), counts, backwards)


@many
@given(counts_of, subscriptions_of)
def test_range_is_even_within_each_topic(
    counts: dict[str, int], wanted: dict[str, tuple[str, ...]]
) -> None:
    owned = deal(RangeAssignor(), counts, wanted)
    for topic in counts:
        loads = [
            len([each for each in mine if each.topic == topic])
            for name, mine in owned.items()
            if topic in wanted[name]
        ]
        assert not loads or max(loads) - min(loads) <= 1


@many
@given(counts_of, st.sets(st.sampled_from(MEMBERS), min_size=1))
def test_equal_subscriptions_are_even_except_for_range(
    counts: dict[str, int], members: set[str]
) -> None:
    wanted = dict.fromkeys(sorted(members), tuple(TOPICS))
    for assignor in (RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()):
        loads = [len(mine) for mine in deal(assignor, counts, wanted).values()]
        assert max(loads) - min(loads) <= 1


@many
@given(counts_of, subscriptions_of)
def test_sticky_is_as_even_as_can_be(
    counts: dict[str, int], wanted: dict[str, tuple[str, ...]]
) -> None:
    assert is_most_even(deal(StickyAssignor(), counts, wanted), wanted)


class StickyGroup:
    """Members that remember, through rebalances."""

    def __init__(self) -> None:
        self.members: dict[str, StickyAssignor] = {}
        self.generation = 0

    def rebalance(self, counts: Mapping[str, int], wanted: Mapping[str, tuple[str, ...]]) -> Owned:
        self.members = {name: self.members.get(name, StickyAssignor()) for name in wanted}
        subscriptions = {
            name: MemberSubscription(
                wanted[name], user_data=member.subscription_user_data(wanted[name])
            )
            for name, member in self.members.items()
        }
        dealt = StickyAssignor().assign(counts, subscriptions)
        self.generation += 1
        for name, member in self.members.items():
            member.on_assignment(dealt[name], self.generation)
        return as_sets(dealt)


@many
@given(counts_of, subscriptions_of)
def test_sticky_changes_nothing_if_nothing_has_changed(
    counts: dict[str, int], wanted: dict[str, tuple[str, ...]]
) -> None:
    group = StickyGroup()
    assert group.rebalance(counts, wanted) == group.rebalance(counts, wanted)


@many
@given(counts_of, st.lists(subscriptions_of, min_size=2, max_size=4))
def test_sticky_is_even_and_complete_after_any_change(
    counts: dict[str, int], stages: list[dict[str, tuple[str, ...]]]
) -> None:
    group = StickyGroup()
    for wanted in stages:
        owned = group.rebalance(counts, wanted)
        check_complete(owned, counts, wanted)
        assert is_most_even(owned, wanted)


@many
@given(
    counts_of,
    st.sets(st.sampled_from(MEMBERS), min_size=1),
    st.sets(st.sampled_from(MEMBERS), min_size=1),
)
def test_sticky_moves_no_more_than_it_must(
    counts: dict[str, int], before: set[str], after: set[str]
) -> None:
    """With equal subscriptions the least number of moves can be computed."""
    group = StickyGroup()
    old = group.rebalance(counts, dict.fromkeys(sorted(before), tuple(TOPICS)))
    new = group.rebalance(counts, dict.fromkeys(sorted(after), tuple(TOPICS)))
    moved = sum(len(old[name] - new[name]) for name in before & after)
    total = sum(counts.values())
    span, left_over = divmod(total, len(after))
    loads = sorted((len(old.get(name, ())) for name in after), reverse=True)
    # Those with the most keep one more, as many of them as there is one more for.
    bounds = [span + 1] * left_over + [span] * (len(after) - left_over)
    assert moved == sum(max(0, load - bound) for load, bound in zip(loads, bounds, strict=True))


@many
@given(counts_of, st.lists(subscriptions_of, min_size=1, max_size=4))
def test_cooperative_never_gives_to_two_and_ends_complete(
    counts: dict[str, int], stages: list[dict[str, tuple[str, ...]]]
) -> None:
    """Each rebalance is followed by the ones that the members who let go of something cause."""
    owned: Owned = {}
    generations = Counter[str]()
    for generation_base, wanted in enumerate(stages):
        owned = {
            name: {each for each in owned.get(name, set()) if each.topic in topics}
            for name, topics in wanted.items()
        }
        for round_number in range(4):
            subscriptions = {
                name: MemberSubscription(
                    wanted[name], frozenset(owned[name]), generation_id=generations[name]
                )
                for name in wanted
            }
            dealt = as_sets(CooperativeStickyAssignor().assign(counts, subscriptions))
            for name, mine in dealt.items():
                generations[name] = generation_base * 10 + round_number + 1
                for other in owned.keys() - {name}:
                    assert not mine & owned[other], "given away before it was let go of"
            revoked = {name: owned[name] - dealt[name] for name in owned}
            owned = dealt
            if not any(revoked.values()):
                break
        else:
            raise AssertionError("it does not come to an end")
        check_complete(owned, counts, wanted)
        assert is_most_even(owned, wanted)
