"""One member's steps from what it has to what it shall have."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.assignment import (
    NOTHING,
    Assignment,
    is_part_of,
    overlap,
    pairs,
    together,
    without,
)
from headwater.coordinator.group.consumer.assigning.reconciliation import reconcile
from headwater.coordinator.group.consumer.member import ConsumerMember, MemberState

TOPIC = uuid.UUID(int=1)


def some(*numbers: int) -> Assignment:
    return {TOPIC: frozenset(numbers)} if numbers else {}


def member(
    *assigned: int, epoch: int = 1, state: MemberState = MemberState.STABLE, **others: Assignment
) -> ConsumerMember:
    return ConsumerMember(
        "me",
        epoch=epoch,
        previous_epoch=0,
        state=state,
        assigned=some(*assigned),
        revoking=others.get("revoking", NOTHING),
    )


def held_by_others(*numbers: int) -> dict[int, str]:
    return dict.fromkeys(numbers, "other")


def step(
    each: ConsumerMember,
    target: Assignment,
    owned: Assignment | None,
    owners: dict[int, str] | None = None,
    epoch: int = 2,
) -> tuple[int, MemberState, Assignment, Assignment]:
    known = owners or {}
    after = reconcile(each, epoch, target, lambda _, number: known.get(number), owned)
    return after.epoch, after.state, after.assigned, after.revoking


def test_what_is_free_is_taken_at_once() -> None:
    assert step(member(0), some(0, 1), None) == (2, MemberState.STABLE, some(0, 1), {})


def test_what_others_have_is_waited_for() -> None:
    after = step(member(0), some(0, 1, 2), None, held_by_others(2))
    assert after == (2, MemberState.UNRELEASED_PARTITIONS, some(0, 1), {})
    waiting = member(0, 1, epoch=2, state=MemberState.UNRELEASED_PARTITIONS)
    assert step(waiting, some(0, 1, 2), None) == (2, MemberState.STABLE, some(0, 1, 2), {})


def test_who_only_waits_does_not_change() -> None:
    waiting = member(0, epoch=2, state=MemberState.UNRELEASED_PARTITIONS)
    assert reconcile(waiting, 2, some(0, 1), lambda *_: "other", None) is waiting


def test_giving_up_comes_before_taking() -> None:
    after = step(member(0, 1), some(1, 2), some(0, 1))
    assert after == (1, MemberState.UNREVOKED_PARTITIONS, some(1), some(0))
    revoking = member(1, state=MemberState.UNREVOKED_PARTITIONS, revoking=some(0))
    assert reconcile(revoking, 2, some(1, 2), lambda *_: None, some(0, 1)) is revoking
    assert reconcile(revoking, 2, some(1, 2), lambda *_: None, None) is revoking
    assert step(revoking, some(1, 2), some(1)) == (2, MemberState.STABLE, some(1, 2), {})


def test_what_the_member_does_not_have_any_more_need_not_be_given_up() -> None:
    assert step(member(0, 1), some(1), some(1)) == (2, MemberState.STABLE, some(1), {})


def test_a_target_may_change_while_partitions_are_given_up() -> None:
    """What the member was about to give up is its own again."""
    revoking = member(1, state=MemberState.UNREVOKED_PARTITIONS, revoking=some(0))
    after = step(revoking, some(0, 1), some(1), {0: "me", 1: "me"}, epoch=3)
    assert after == (3, MemberState.STABLE, some(0, 1), {})
    again = step(revoking, some(2), some(1), {0: "me", 1: "me"}, epoch=3)
    assert again == (1, MemberState.UNREVOKED_PARTITIONS, {}, some(1))


def test_who_is_where_it_should_be_stays() -> None:
    stable = member(0, epoch=2)
    assert reconcile(stable, 2, some(0), lambda *_: "me", some(0)) is stable


def test_a_state_that_is_not_known_can_only_begin_anew() -> None:
    unknown = member(0, state=MemberState.UNKNOWN)
    for owned in (None, some(0)):
        with pytest.raises(KafkaError) as caught:
            step(unknown, some(0), owned)
        assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(unknown, some(0), NOTHING) == (2, MemberState.STABLE, some(0), {})


assignments = st.frozensets(st.integers(0, 5)).map(lambda numbers: some(*numbers))


@given(assigned=assignments, target=assignments, owned=st.none() | assignments, others=assignments)
def test_a_step_never_takes_what_others_have_nor_forgets_what_the_member_may_have(
    assigned: Assignment, target: Assignment, owned: Assignment | None, others: Assignment
) -> None:
    others = without(others, assigned)
    owners = dict.fromkeys((number for _, number in pairs(others)), "other")
    owners.update(dict.fromkeys((number for _, number in pairs(assigned)), "me"))
    each = ConsumerMember("me", epoch=1, assigned=assigned)
    after = reconcile(each, 2, target, lambda _, number: owners.get(number), owned)
    assert not overlap(after.assigned, others)
    assert is_part_of(after.assigned, target)
    given_up = without(assigned, together(after.assigned, after.revoking))
    if given_up:
        assert owned is not None
        assert not overlap(owned, given_up)
    is_done = after.assigned == target
    assert (after.state is MemberState.STABLE) == (after.epoch == 2 and is_done)
