"""What all assignors promise, and what each of them does."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.coordinator.group.consumer.assigning.assignment import NOTHING, Assignment, pairs
from headwater.coordinator.group.consumer.assignors.assignor import Assignor, GroupSpec, MemberSpec
from headwater.coordinator.group.consumer.assignors.range import RangeAssignor
from headwater.coordinator.group.consumer.assignors.uniform import UniformAssignor
from tests.support.tiers import rounds

TOPICS = [uuid.UUID(int=number + 1) for number in range(4)]
ASSIGNORS: list[Assignor] = [UniformAssignor(), RangeAssignor()]
EXAMPLES = rounds(150, 3000)

Subscriptions = dict[str, frozenset[uuid.UUID]]


def spec(
    subscriptions: Subscriptions,
    counts: dict[uuid.UUID, int],
    current: Mapping[str, Assignment] | None = None,
) -> GroupSpec:
    read = frozenset().union(*subscriptions.values())
    return GroupSpec(
        {
            member_id: MemberSpec(topics, (current or {}).get(member_id, NOTHING))
            for member_id, topics in subscriptions.items()
        },
        {topic_id: count for topic_id, count in counts.items() if topic_id in read},
    )


def load(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def loads(group: GroupSpec, dealt: dict[str, Assignment]) -> list[int]:
    return sorted(load(dealt.get(member_id, NOTHING)) for member_id in group.members)


def check_complete(group: GroupSpec, dealt: dict[str, Assignment]) -> None:
    """Each partition of each topic that is read has exactly one owner, who reads it."""
    given_out = [pair for assignment in dealt.values() for pair in pairs(assignment)]
    wanted = {
        (topic_id, number)
        for topic_id, count in group.partition_counts.items()
        for number in range(count)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted
    for member_id, assignment in dealt.items():
        assert set(assignment) <= group.members[member_id].topics
        assert all(assignment.values())


counts_of_topics = st.fixed_dictionaries({topic_id: st.integers(1, 7) for topic_id in TOPICS})
member_names = st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=6)
topic_sets = st.frozensets(st.sampled_from(TOPICS))


@st.composite
def subscriptions_of(draw: st.DrawFn, *, same: bool) -> Subscriptions:
    names = sorted(draw(member_names))
    if same:
        return dict.fromkeys(names, draw(topic_sets.filter(bool)))
    return {name: draw(topic_sets) for name in names}


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: str(assignor.name))
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_partition_is_given_to_one_subscriber_over_a_groups_history(
    assignor: Assignor, data: st.DataObject
) -> None:
    current: dict[str, Assignment] = {}
    for _ in range(3):
        subscriptions = data.draw(subscriptions_of(same=data.draw(st.booleans())))
        group = spec(subscriptions, data.draw(counts_of_topics), current)
        dealt = assignor.assign(group)
        check_complete(group, dealt)
        assert dealt == assignor.assign(group)
        current = dealt


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: str(assignor.name))
@given(subscriptions=subscriptions_of(same=False), counts=counts_of_topics)
@settings(max_examples=EXAMPLES, deadline=None)
def test_nothing_moves_if_nothing_changes(
    assignor: Assignor, subscriptions: Subscriptions, counts: dict[uuid.UUID, int]
) -> None:
    dealt = assignor.assign(spec(subscriptions, counts))
    assert assignor.assign(spec(subscriptions, counts, dealt)) == dealt


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_uniform_shares_differ_by_one_and_only_the_surplus_moves(data: st.DataObject) -> None:
    assignor = UniformAssignor()
    topics = data.draw(topic_sets.filter(bool))
    counts = data.draw(counts_of_topics)
    before = assignor.assign(spec(dict.fromkeys(data.draw(member_names), topics), counts))
    names = data.draw(member_names)
    group = spec(dict.fromkeys(names, topics), counts, before)
    dealt = assignor.assign(group)
    sizes = loads(group, dealt)
    assert sizes[-1] - sizes[0] <= 1
    # The most that any assignment with these shares could leave where it is.
    held = sorted((load(before.get(name, NOTHING)) for name in names), reverse=True)
    share, more = divmod(sum(group.partition_counts.values()), len(names))
    could_stay = sum(min(size, share + (rank < more)) for rank, size in enumerate(held))
    stayed = sum(
        len(set(pairs(before[name])) & set(pairs(dealt.get(name, NOTHING))))
        for name in names & before.keys()
    )
    assert stayed == could_stay


@given(
    subscriptions=st.dictionaries(
        st.sampled_from("abc"), st.frozensets(st.sampled_from(TOPICS[:3])), min_size=2
    ),
    counts=st.fixed_dictionaries({topic_id: st.integers(1, 2) for topic_id in TOPICS[:3]}),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_uniform_finds_the_most_even_assignment_for_different_subscriptions(
    subscriptions: Subscriptions, counts: dict[uuid.UUID, int]
) -> None:
    group = spec(subscriptions, counts)
    dealt = UniformAssignor().assign(group)
    subscribers = [
        [name for name, topics in subscriptions.items() if topic_id in topics]
        for topic_id, count in group.partition_counts.items()
        for _ in range(count)
    ]
    best = min(
        sum(owners.count(name) ** 2 for name in subscriptions) for owners in product(*subscribers)
    )
    assert sum(size**2 for size in loads(group, dealt)) == best


def test_uniform_hands_partitions_on_over_several_members() -> None:
    """Nobody can give the idle member anything that helps, except over the one between."""
    first, second = TOPICS[:2]
    subscriptions = {
        "a": frozenset({first}),
        "b": frozenset({first, second}),
        "c": frozenset({second}),
    }
    current = {"a": {first: frozenset({0, 1})}, "b": {second: frozenset({0})}}
    dealt = UniformAssignor().assign(spec(subscriptions, {first: 2, second: 1}, current))
    assert {name: load(assignment) for name, assignment in dealt.items()} == {
        "a": 1,
        "b": 1,
        "c": 1,
    }


def test_uniform_spreads_the_partitions_of_a_topic() -> None:
    dealt = UniformAssignor().assign(
        spec(dict.fromkeys("ab", frozenset(TOPICS[:2])), dict.fromkeys(TOPICS[:2], 2))
    )
    assert all(set(assignment) == set(TOPICS[:2]) for assignment in dealt.values())


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_range_gives_like_topics_alike_and_each_topic_evenly(data: st.DataObject) -> None:
    current: dict[str, Assignment] = {}
    for _ in range(2):
        subscriptions = data.draw(subscriptions_of(same=data.draw(st.booleans())))
        group = spec(subscriptions, data.draw(counts_of_topics), current)
        dealt = current = RangeAssignor().assign(group)
        alike: dict[tuple[int, tuple[str, ...]], dict[str, frozenset[int]]] = {}
        for topic_id, count in group.partition_counts.items():
            readers = tuple(
                name for name in sorted(subscriptions) if topic_id in subscriptions[name]
            )
            numbers = {
                name: dealt.get(name, NOTHING).get(topic_id, frozenset()) for name in readers
            }
            sizes = sorted(map(len, numbers.values()))
            assert sizes[-1] - sizes[0] <= 1
            assert alike.setdefault((count, readers), numbers) == numbers


def test_range_deals_out_runs_of_numbers() -> None:
    dealt = RangeAssignor().assign(
        spec(dict.fromkeys("abc", frozenset(TOPICS[:1])), {TOPICS[0]: 7})
    )
    assert [sorted(dealt[name][TOPICS[0]]) for name in "abc"] == [[0, 1, 2], [3, 4], [5, 6]]


def test_range_leaves_members_what_they_have() -> None:
    topics = frozenset(TOPICS[:2])
    counts = dict.fromkeys(TOPICS[:2], 4)
    two = RangeAssignor().assign(spec(dict.fromkeys("ab", topics), counts))
    three = RangeAssignor().assign(spec(dict.fromkeys("abc", topics), counts, two))
    kept = [set(pairs(two[name])) & set(pairs(three[name])) for name in "ab"]
    assert [len(each) for each in kept] == [4, 2]
    assert load(three["c"]) == 2


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    members = {
        "a": MemberSpec(frozenset(), NOTHING),
        "b": MemberSpec(frozenset(), NOTHING, "z"),
        "c": MemberSpec(frozenset(), NOTHING, "y"),
    }
    assert GroupSpec(members, {}).ordered_members == ["c", "b", "a"]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: str(assignor.name))
def test_without_topics_or_members_nobody_gets_anything(assignor: Assignor) -> None:
    assert assignor.assign(GroupSpec({}, {})) == {}
    assert assignor.assign(spec({"a": frozenset()}, {})) == {}


def test_numbers_beyond_a_topics_partitions_are_not_kept() -> None:
    """A topic was deleted and made anew with fewer partitions, or a record is odd."""
    current = {"a": {TOPICS[0]: frozenset({0, 9})}}
    for assignor in ASSIGNORS:
        dealt = assignor.assign(spec({"a": frozenset(TOPICS[:1])}, {TOPICS[0]: 2}, current))
        assert dealt == {"a": {TOPICS[0]: frozenset({0, 1})}}
