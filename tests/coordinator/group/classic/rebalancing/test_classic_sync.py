"""SyncGroup of the classic protocol."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from tests.support.worlds.classic_world import (
    NOT_WRITTEN,
    REBALANCE_MS,
    SESSION_MS,
    ClassicWorld,
    code,
)


def joined_pair(world: ClassicWorld) -> tuple[str, str]:
    """A leader and a follower that have joined, and nothing more."""
    anna, _ = world.enter()
    bert, _ = world.enter()
    world.join(anna)
    assert world.state() == "CompletingRebalance"
    return anna, bert


def test_followers_wait_for_the_leader() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    waiting = world.sync(bert)
    assert not waiting.is_given
    leading = world.sync(anna, {anna: b"0", bert: b"1"})
    assert (leading.get().assignment, waiting.get().assignment) == (b"0", b"1")
    assert (waiting.get().protocol_type, waiting.get().protocol_name) == ("consumer", "range")
    assert world.state() == "Stable"


def test_who_asks_later_gets_its_assignment_at_once() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    world.sync(anna, {anna: b"0", bert: b"1"})
    assert world.sync(bert).get().assignment == b"1"
    assert world.sync(bert).get().assignment == b"1"


def test_members_hear_of_assignments_when_they_are_safe() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    waiting = world.sync(bert)
    world.hold = True
    leading = world.sync(anna, {anna: b"0", bert: b"1"})
    assert not waiting.is_given
    assert not leading.is_given
    assert world.state() == "CompletingRebalance"
    world.release()
    assert (leading.get().assignment, waiting.get().assignment) == (b"0", b"1")


def test_whom_the_leader_forgets_gets_nothing() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    world.sync(anna, {anna: b"0", "nobody": b"1"})
    assert world.sync(bert).get().assignment == b""


def test_a_leader_that_asks_twice_decides_once() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    world.hold = True
    first = world.sync(anna, {anna: b"0"})
    second = world.sync(anna, {anna: b"9"})
    assert code(first) == ErrorCode.REBALANCE_IN_PROGRESS
    world.release()
    assert second.get().assignment == b"0"
    assert world.sync(bert).get().assignment == b""


@pytest.mark.parametrize("is_appended", [False, True])
def test_if_it_cannot_be_written_all_hear_it_and_join_again(is_appended: bool) -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    waiting = world.sync(bert)
    if is_appended:
        world.hold = True
    else:
        world.fail_next = NOT_WRITTEN
    leading = world.sync(anna, {anna: b"0", bert: b"1"})
    if is_appended:
        world.lose(NOT_WRITTEN)
        world.hold = False
    assert code(leading) == code(waiting) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(anna) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(anna)
    assert world.join(bert).get().generation_id == 3
    world.settle_generation([anna, bert])
    world.check_replay()


def test_members_do_not_hear_of_records() -> None:
    world = ClassicWorld()
    anna, _ = joined_pair(world)
    world.fail_next = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too much")
    assert code(world.sync(anna, {anna: b"0"})) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_rebalance_that_begins_in_between_answers_those_who_wait() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    waiting = world.sync(bert)
    world.hold = True
    leading = world.sync(anna, {anna: b"0", bert: b"1"})
    world.enter()
    assert code(waiting) == code(leading) == ErrorCode.REBALANCE_IN_PROGRESS
    world.release()
    assert world.state() == "PreparingRebalance"
    assert code(world.sync(anna)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_may_ask() -> None:
    world = ClassicWorld()
    assert code(world.sync("nobody", generation=1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.sync("nobody", group="")) == ErrorCode.INVALID_GROUP_ID
    anna, _ = joined_pair(world)
    assert code(world.sync("nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.sync(anna, generation=1)) == ErrorCode.ILLEGAL_GENERATION
    assert code(world.sync(anna, generation=3)) == ErrorCode.ILLEGAL_GENERATION
    wrong_type = world.sync(anna, protocol_type="connect")
    assert code(wrong_type) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong_name = world.sync(anna, protocol_name="sticky")
    assert code(wrong_name) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    right = world.sync(anna, {anna: b"0"}, protocol_name="range")
    assert code(right) == ErrorCode.NONE


def test_who_does_not_ask_in_time_is_removed() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    world.sync(anna, {anna: b"0", bert: b"1"})
    for _ in range(REBALANCE_MS // SESSION_MS * 2 - 1):
        world.advance(SESSION_MS // 2)
        assert world.heartbeat(anna) == world.heartbeat(bert) == ErrorCode.NONE
    world.advance(SESSION_MS // 2)
    assert list(world.group().members) == [anna]
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(bert) == ErrorCode.UNKNOWN_MEMBER_ID


def test_if_the_leader_does_not_ask_in_time_another_one_leads() -> None:
    world = ClassicWorld()
    anna, bert = joined_pair(world)
    waiting = world.sync(bert)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        assert not waiting.is_given
        world.heartbeat(anna)
        world.advance(SESSION_MS // 2)
    assert code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.join(bert).get()
    assert (answer.leader, answer.generation_id) == (bert, 3)
