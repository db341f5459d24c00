"""Static members: they keep their place while they are restarted."""

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.join_group import JoinGroupResponse
from tests.support.worlds.classic_world import (
    NOT_WRITTEN,
    REBALANCE_MS,
    SESSION_MS,
    ClassicWorld,
    code,
)
from tests.support.worlds.shard_world import Answer


def static_pair(world: ClassicWorld) -> tuple[str, str]:
    """A stable group of "first", who leads, and "second"."""
    first_id = world.join(instance="first").get().member_id
    joining = world.join(instance="second")
    world.join(first_id, instance="first")
    second_id = joining.get().member_id
    world.settle_generation([first_id, second_id])
    return first_id, second_id


def test_a_static_member_needs_no_id_first() -> None:
    world = ClassicWorld()
    answer = world.join(instance="first").get()
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_id.startswith("first-")
    assert answer.members[0].group_instance_id == "first"


def test_a_static_member_that_returns_takes_its_place_without_a_rebalance() -> None:
    world = ClassicWorld()
    first_id, second_id = static_pair(world)
    answer = world.join(instance="second").get()
    assert answer.member_id not in (first_id, second_id)
    assert (answer.generation_id, answer.leader, answer.members) == (2, first_id, [])
    assert not answer.skip_assignment
    assert world.state() == "Stable"
    got = world.sync(answer.member_id, instance="second").get()
    assert got.assignment == second_id.encode()


def test_a_full_group_has_room_for_a_static_member_that_returns() -> None:
    world = ClassicWorld({"group.max.size": "2"})
    static_pair(world)
    assert code(world.join(instance="third")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(world.join(instance="second")) == ErrorCode.NONE


def test_the_old_member_id_is_fenced() -> None:
    world = ClassicWorld()
    _, second_id = static_pair(world)
    new_id = world.join(instance="second").get().member_id
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(second_id, instance="second") == fenced
    assert code(world.sync(second_id, instance="second")) == fenced
    assert code(world.join(second_id, instance="second")) == fenced
    assert world.heartbeat(second_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(new_id, instance="second") == ErrorCode.NONE
    assert world.heartbeat(new_id, instance="third") == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_new_member_id_is_stored() -> None:
    world = ClassicWorld()
    _, second_id = static_pair(world)
    new_id = world.join(instance="second").get().member_id
    world.check_replay()
    world.fail_over()
    assert world.group().static_ids["second"] == new_id
    assert world.group().members[new_id].assignment == second_id.encode()


def test_a_leader_that_returns_still_leads_but_need_not_assign() -> None:
    world = ClassicWorld()
    first_id, second_id = static_pair(world)
    answer = world.join(instance="first").get()
    assert answer.skip_assignment
    assert answer.leader == answer.member_id == world.group().leader_id
    assert {each.member_id for each in answer.members} == {answer.member_id, second_id}
    assert world.sync(answer.member_id, instance="first").get().assignment == first_id.encode()


@pytest.mark.parametrize("version", [5, 8])
def test_older_leaders_that_return_are_not_told_that_they_lead(version: int) -> None:
    world = ClassicWorld()
    first_id, _ = static_pair(world)
    answer = world.join(instance="first", version=version).get()
    assert (answer.leader, answer.members, answer.skip_assignment) == (first_id, [], False)
    assert world.group().leader_id == answer.member_id


def test_the_answer_waits_until_the_new_id_is_safe() -> None:
    world = ClassicWorld()
    static_pair(world)
    world.hold = True
    answer = world.join(instance="second")
    assert not answer.is_given
    world.release()
    assert code(answer) == ErrorCode.NONE


def test_if_the_new_id_cannot_be_stored_the_old_one_stays() -> None:
    world = ClassicWorld()
    _, second_id = static_pair(world)
    world.fail_next = NOT_WRITTEN
    answer = world.join(instance="second", session_ms=20_000)
    assert code(answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group().static_ids["second"] == second_id
    assert world.heartbeat(second_id, instance="second") == ErrorCode.NONE
    assert world.group().members[second_id].session_timeout_ms == SESSION_MS
    world.check_replay()


def test_a_rebalance_that_comes_in_between_answers_instead() -> None:
    world = ClassicWorld()
    first_id, _ = static_pair(world)
    world.hold = True
    answer = world.join(instance="second")
    _, third = world.enter()
    world.lose(NOT_WRITTEN)
    assert not answer.is_given
    world.join(first_id, instance="first")
    assert answer.get().generation_id == third.get().generation_id == 3


def test_two_that_claim_the_same_name_fence_each_other() -> None:
    world = ClassicWorld()
    static_pair(world)
    world.hold = True
    earlier: Answer[JoinGroupResponse] = world.join(instance="second")
    later = world.join(instance="second")
    assert code(earlier) == ErrorCode.FENCED_INSTANCE_ID
    world.release()
    assert later.get().member_id == world.group().static_ids["second"]


def test_a_replaced_member_that_waits_is_fenced() -> None:
    world = ClassicWorld()
    first_id, second_id = static_pair(world)
    joining = world.join(first_id, instance="first")
    again = world.join(instance="first")
    assert code(joining) == ErrorCode.FENCED_INSTANCE_ID
    assert not again.is_given
    world.join(second_id, instance="second")
    syncing = world.sync(second_id, instance="second")
    world.join(instance="second")
    assert code(syncing) == ErrorCode.FENCED_INSTANCE_ID


def test_a_return_during_the_second_half_begins_it_anew() -> None:
    world = ClassicWorld()
    first_id = world.join(instance="first").get().member_id
    assert world.state() == "CompletingRebalance"
    answer = world.join(instance="first").get()
    assert answer.generation_id == 2
    assert answer.leader == answer.member_id != first_id


def test_a_return_with_another_favourite_begins_a_rebalance() -> None:
    world = ClassicWorld()
    both = ("range", "sticky")
    first_id = world.join(instance="first", protocols=both).get().member_id
    world.sync(first_id, {first_id: b"0"}, instance="first")
    answer = world.join(instance="first", protocols=("sticky", "range")).get()
    assert (answer.generation_id, answer.protocol_name) == (2, "sticky")


def test_a_static_member_may_miss_the_first_half_of_a_rebalance() -> None:
    world = ClassicWorld()
    first_id = world.join(instance="first", session_ms=1_000_000).get().member_id
    joining = world.join(instance="second", session_ms=1_000_000)
    world.join(first_id, instance="first", session_ms=1_000_000)
    second_id = joining.get().member_id
    world.settle_generation([first_id, second_id])
    waiting = world.join(first_id, instance="first", session_ms=1_000_000)
    world.advance(REBALANCE_MS)
    assert waiting.get().generation_id == 3
    assert {each.member_id for each in waiting.get().members} == {first_id, second_id}


def test_if_a_static_leader_misses_it_another_one_leads() -> None:
    world = ClassicWorld()
    first_id = world.join(instance="first", session_ms=1_000_000).get().member_id
    second, _ = world.enter(session_ms=1_000_000)
    world.join(first_id, instance="first", session_ms=1_000_000)
    world.settle_generation([first_id])
    waiting = world.join(second, protocols=("range", "sticky"), session_ms=1_000_000)
    world.advance(REBALANCE_MS)
    assert waiting.get().leader == second
    assert {each.member_id for each in waiting.get().members} == {first_id, second}


def test_if_no_static_member_is_back_the_rebalance_waits_for_their_sessions() -> None:
    world = ClassicWorld()
    first_id = world.join(instance="first", session_ms=3 * REBALANCE_MS).get().member_id
    world.sync(first_id, {first_id: b"0"}, instance="first")
    dynamic_id, _ = world.enter()
    world.leave(dynamic_id)
    world.advance(REBALANCE_MS)
    assert world.state() == "PreparingRebalance"
    assert world.generation() == 1
    world.advance(2 * REBALANCE_MS)
    assert world.state() == "Empty"
    assert world.generation() == 2


def test_a_dynamic_member_that_misses_it_is_removed() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2, session_ms=100_000)
    waiting = world.join(anna, session_ms=100_000)
    world.advance(REBALANCE_MS - 1)
    assert not waiting.is_given
    world.advance(1)
    assert [each.member_id for each in waiting.get().members] == [anna]
    assert world.heartbeat(bert) == ErrorCode.UNKNOWN_MEMBER_ID
