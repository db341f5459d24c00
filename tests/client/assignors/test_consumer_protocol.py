"""What members write for each other, byte by byte as Java's clients do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import MemberAssignment, MemberSubscription
from headwater.client.assignors.claims import Claim, settle_claims
from headwater.client.assignors.consumer_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from headwater.client.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from headwater.client.assignors.sticky_assignor import StickyAssignor, read_claim, write_claim
from headwater.wire.codec import MalformedMessageError

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

partitions = st.frozensets(
    st.builds(TopicPartition, st.sampled_from(["a", "b", "long-name"]), st.integers(0, 2**31 - 1))
)


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), unique=True),
    partitions,
    st.none() | st.binary(),
    st.integers(-1, 2**31 - 1),
    st.none() | st.just("rack-1"),
)
def test_a_subscription_comes_back_as_it_was(
    topics: list[str],
    owned: frozenset[TopicPartition],
    user_data: bytes | None,
    generation_id: int,
    rack_id: str | None,
) -> None:
    told = MemberSubscription(tuple(topics), owned, user_data, generation_id, "i1", rack_id)
    assert read_subscription(write_subscription(told), "i1") == told


@given(partitions, st.none() | st.binary())
def test_an_assignment_comes_back_as_it_was(
    dealt: frozenset[TopicPartition], user_data: bytes | None
) -> None:
    told = MemberAssignment(tuple(sorted(dealt)), user_data)
    assert read_assignment(write_assignment(told)) == told


def test_no_bytes_assign_nothing() -> None:
    assert read_assignment(b"") == MemberAssignment()


def test_a_later_version_is_read_as_the_last_one_that_is_known() -> None:
    buffer = write_subscription(MemberSubscription(("a",), frozenset({A1}), generation_id=5))
    later = b"\x00\x09" + buffer[2:] + b"what later versions add"
    assert read_subscription(later, None).owned == {A1}


def test_the_first_version_has_no_owned_partitions() -> None:
    first = bytes.fromhex("000000000001000161ffffffff")
    assert read_subscription(first, None) == MemberSubscription(("a",))


@pytest.mark.parametrize("buffer", [b"\x00", b"\xff\xff\x00\x00", b"\x00\x01\x00\x00\x00\x05"])
def test_what_no_consumer_sends_is_refused(buffer: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        read_subscription(buffer, None)


# -- the user data of the sticky assignors ---------------------------------------------------------


def test_sticky_user_data_are_those_of_java() -> None:
    """An array of (topic, array of partitions), and the generation."""
    expected = bytes.fromhex("00000002000161000000020000000000000001000162000000010000000000000007")
    assert write_claim(Claim((B0, A0, A1), 7)) == expected
    assert read_claim(expected) == Claim({A0, A1, B0}, 7)


def test_sticky_user_data_of_old_members_have_no_generation() -> None:
    old = bytes.fromhex("000000010001610000000100000001")
    assert read_claim(old) == Claim({A1}, -1)


@given(st.binary(max_size=40))
def test_sticky_user_data_that_cannot_be_read_claim_nothing(user_data: bytes) -> None:
    claim = read_claim(user_data)
    assert claim.generation_id >= -(2**31)


def test_a_member_that_has_had_nothing_says_so() -> None:
    assert StickyAssignor().subscription_user_data(["a"]) is None


def test_cooperative_user_data_are_the_generation() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.subscription_user_data(["a"]) == bytes.fromhex("ffffffff")
    assignor.on_assignment(MemberAssignment((A0,)), 9)
    assert assignor.subscription_user_data(["a"]) == bytes.fromhex("00000009")


# -- contradicting claims --------------------------------------------------------------------------


def test_the_claim_of_the_later_generation_holds() -> None:
    claims = {"old": Claim([A0, A1], 3), "new": Claim([A1, B0], 4)}
    assert settle_claims(claims) == {"old": {A0}, "new": {A1, B0}}


def test_two_claims_of_one_generation_cancel_each_other() -> None:
    claims = {"one": Claim([A0, A1], 4), "two": Claim([A1], 4), "three": Claim([A1], 3)}
    assert settle_claims(claims) == {"one": {A0}, "two": set(), "three": set()}


def test_a_cooperative_group_gives_nobody_what_two_claim() -> None:
    subscriptions = {
        name: MemberSubscription(("a",), frozenset({A0}), generation_id=4) for name in ("x", "y")
    }
    dealt = CooperativeStickyAssignor().assign({"a": 2}, subscriptions)
    assert [each for member in dealt.values() for each in member.partitions] == [A1]


@pytest.mark.parametrize(("generation", "kept"), [("00000003", (A1,)), ("00000005", ())])
def test_the_generation_of_older_members_is_in_their_user_data(
    generation: str, kept: tuple[TopicPartition, ...]
) -> None:
    """If its claim is the older one, it has one partition, and keeps it; else two, of which one
    goes, and the other is not given to anybody while another member claims it too."""
    older = MemberSubscription(("a",), frozenset({A0, A1}), bytes.fromhex(generation))
    newer = MemberSubscription(("a",), frozenset({A0}), generation_id=4)
    dealt = CooperativeStickyAssignor().assign({"a": 2}, {"older": older, "newer": newer})
    assert dealt["older"].partitions == kept
