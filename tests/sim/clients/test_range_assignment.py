from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.sim.clients.range_assignment import (
    assign_ranges,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)


def test_the_first_members_get_one_more() -> None:
    subscriptions = {member: encode_subscription(["orders"]) for member in ("b", "a", "c")}
    assigned = assign_ranges(subscriptions, {"orders": 4})
    assert {member: [each.partition for each in some] for member, some in assigned.items()} == {
        "a": [0, 1],
        "b": [2],
        "c": [3],
    }


@given(
    counts=st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9), min_size=1),
    subscribed=st.dictionaries(st.text(min_size=1), st.sets(st.sampled_from("xyz")), min_size=1),
)
def test_every_partition_that_somebody_wants_has_one_owner(
    counts: dict[str, int], subscribed: dict[str, set[str]]
) -> None:
    subscriptions = {
        member: encode_subscription(sorted(topics)) for member, topics in subscribed.items()
    }
    assigned = assign_ranges(subscriptions, counts)
    owned = [(member, each) for member, some in assigned.items() for each in some]
    assert all(each.topic in subscribed[member] for member, each in owned)
    wanted = set().union(*subscribed.values())
    assert sorted(each for _, each in owned) == sorted(
        TopicPartition(topic, number)
        for topic, count in counts.items()
        if topic in wanted
        for number in range(count)
    )


@given(st.lists(st.builds(TopicPartition, st.text(), st.integers(0, 9)), unique=True))
def test_an_assignment_comes_back_as_it_was(partitions: list[TopicPartition]) -> None:
    assert sorted(decode_assignment(encode_assignment(partitions))) == sorted(partitions)


def test_no_assignment_is_no_partition() -> None:
    assert decode_assignment(b"") == []
