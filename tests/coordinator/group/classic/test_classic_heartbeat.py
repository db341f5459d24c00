"""Heartbeats and sessions of the classic protocol."""

from headwater.base.errors import ErrorCode
from tests.support.worlds.classic_world import SESSION_MS, ClassicWorld, code


def test_a_heartbeat_is_answered_by_the_state_of_the_group() -> None:
    world = ClassicWorld()
    assert world.heartbeat("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("nobody", group="") == ErrorCode.INVALID_GROUP_ID
    anna, _ = world.enter()
    assert world.heartbeat(anna) == ErrorCode.NONE, "the second half of a rebalance"
    world.sync(anna, {anna: b"0"})
    assert world.heartbeat(anna) == ErrorCode.NONE
    world.enter()
    assert world.heartbeat(anna) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(anna, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(anna, instance="none") == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_alive() -> None:
    world = ClassicWorld()
    anna, _ = world.stable_group(2)
    for _ in range(5):
        world.advance(SESSION_MS - 1)
        assert world.heartbeat(anna) in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    assert list(world.group().members) == [anna]


def test_a_commit_keeps_a_member_alive_too() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    for _ in range(3):
        world.advance(SESSION_MS - 1)
        world.group().check_offset_commit(anna, None, 1, is_transactional=False, api_version=8)
    assert world.state() == "Stable"
    world.advance(SESSION_MS)
    assert world.state() == "Empty"


def test_who_waits_for_the_others_need_not_send_heartbeats() -> None:
    world = ClassicWorld()
    anna, bert, carl = world.stable_group(3)
    waiting = world.join(anna)
    for _ in range(4):
        world.advance(SESSION_MS - 1)
        world.heartbeat(bert)
        world.heartbeat(carl)
    assert not waiting.is_given
    world.join(bert)
    world.join(carl)
    assert code(waiting) == ErrorCode.NONE
    world.advance(SESSION_MS - 1)
    assert anna in world.group().members, "the answer started its session again"


def test_who_waits_for_the_leader_need_not_send_heartbeats() -> None:
    world = ClassicWorld()
    anna, _ = world.enter()
    bert, _ = world.enter()
    world.join(anna)
    waiting = world.sync(bert)
    for _ in range(4):
        world.advance(SESSION_MS - 1)
        world.heartbeat(anna)
    assert not waiting.is_given
    world.sync(anna, {anna: b"0", bert: b"1"})
    assert waiting.get().assignment == b"1"
    world.advance(SESSION_MS - 1)
    assert bert in world.group().members


def test_the_last_member_that_is_silent_leaves_an_empty_group() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    world.advance(SESSION_MS)
    assert world.state() == "Empty"
    assert world.heartbeat(anna) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.timers_of_groups() == []
    world.check_replay()
