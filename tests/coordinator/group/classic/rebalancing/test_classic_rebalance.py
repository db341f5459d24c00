"""When classic groups rebalance, and how long a rebalance waits."""

import pytest

from headwater.base.errors import ErrorCode
from headwater.coordinator.group.classic.state import TRANSITIONS, ClassicState
from tests.support.worlds.classic_world import (
    MOVED,
    REBALANCE_MS,
    SESSION_MS,
    ClassicWorld,
    classic_timers,
    code,
    subscription,
)


def test_every_state_can_be_reached_and_only_death_is_final() -> None:
    reached = frozenset[ClassicState]().union(*TRANSITIONS.values())
    assert reached == set(ClassicState)
    assert [state for state in ClassicState if not TRANSITIONS[state]] == [ClassicState.DEAD]


# -- the five triggers ---------------------------------------------------------------------------


def test_a_member_that_joins_triggers_a_rebalance() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    carl, waiting = world.enter()
    assert world.heartbeat(anna) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(anna)
    world.join(bert)
    assert waiting.get().generation_id == 3
    world.settle_generation([anna, bert, carl])


def test_a_member_that_dies_triggers_a_rebalance() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    world.advance(SESSION_MS - 1)
    assert world.heartbeat(anna) == ErrorCode.NONE
    world.advance(1)
    assert world.heartbeat(anna) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(anna).get().generation_id == 3
    world.settle_generation([anna])
    assert world.heartbeat(bert) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_triggers_a_rebalance() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    world.leave(anna)
    assert world.heartbeat(bert) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.join(bert).get()
    assert (answer.generation_id, answer.leader) == (3, bert)
    world.settle_generation([bert])


def test_a_coordinator_that_moves_knows_stable_groups_and_rebalances_the_others() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    world.fail_over()
    assert world.heartbeat(anna) == world.heartbeat(bert) == ErrorCode.NONE
    assert world.sync(bert).get().assignment == bert.encode()

    waiting = world.join(anna)
    world.fail_over()
    assert code(waiting) == MOVED.code, "whoever waits asks the new one"
    again = world.join(anna)
    assert world.heartbeat(bert) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(bert)
    assert again.get().generation_id == 3
    world.settle_generation([anna, bert])


def test_a_leader_that_sees_other_partitions_triggers_a_rebalance() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    # It joins with what it said before; a follower would be sent back to work.
    waiting = world.join(anna)
    assert not waiting.is_given
    assert world.heartbeat(bert) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(bert)
    assert waiting.get().generation_id == 3


def test_a_member_that_wants_other_topics_triggers_a_rebalance() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    waiting = world.join(bert, protocols={"range": subscription("events", "orders")})
    assert not waiting.is_given
    assert world.heartbeat(anna) == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(anna)
    world.settle_generation([anna, bert])
    assert world.group().is_subscribed_to("orders")


# -- how long it waits ---------------------------------------------------------------------------


def test_a_single_broker_lets_no_new_group_wait() -> None:
    world = ClassicWorld()
    _, answer = world.enter()
    assert code(answer) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("brokers", "delay"), [(3, "3000"), (3, None), (1, "3000"), (1, "2000"), (3, "2000"), (1, "1")]
)
def test_elsewhere_a_new_group_waits_for_more_members(brokers: int, delay: str | None) -> None:
    settings = {} if delay is None else {"group.initial.rebalance.delay.ms": delay}
    world = ClassicWorld(settings, brokers=brokers)
    delay_ms = 3000 if delay is None else int(delay)
    _, answer = world.enter()
    world.advance(delay_ms - 1)
    assert not answer.is_given
    world.advance(1)
    assert answer.get().generation_id == 1


@pytest.mark.parametrize("brokers", [1, 3])
def test_the_wait_can_be_turned_off(brokers: int) -> None:
    world = ClassicWorld({"group.initial.rebalance.delay.ms": "0"}, brokers=brokers)
    assert code(world.enter()[1]) == ErrorCode.NONE


def test_the_wait_is_prolonged_while_members_come() -> None:
    world = ClassicWorld(brokers=3)
    _, first = world.enter()
    world.advance(2_000)
    _, second = world.enter()
    world.advance(1_000)
    assert not first.is_given
    world.advance(3_000)
    assert first.get().generation_id == second.get().generation_id == 1
    assert len(world.group().members) == 2


def test_the_wait_is_not_prolonged_beyond_the_rebalance_timeout() -> None:
    world = ClassicWorld(brokers=3)
    _, first = world.enter(rebalance_ms=7_000)
    for _ in range(6):
        world.advance(1_000)
        world.enter(rebalance_ms=7_000)
    assert not first.is_given
    world.advance(1_000)
    assert first.get().generation_id == 1
    assert len(world.group().members) == 7


def test_a_new_group_whose_members_all_go_is_empty_again() -> None:
    world = ClassicWorld(brokers=3)
    anna, answer = world.enter()
    world.leave(anna)
    assert code(answer) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() == "PreparingRebalance"
    world.advance(3_000)
    assert (world.state(), world.generation()) == ("Empty", 1)
    world.check_replay()


def test_who_does_not_join_again_in_time_is_removed() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2, rebalance_ms=REBALANCE_MS)
    _, waiting = world.enter()
    world.join(bert)
    for _ in range(2 * REBALANCE_MS // SESSION_MS):
        world.advance(SESSION_MS // 2)
        world.heartbeat(anna)
    assert waiting.get().leader == bert, "the old leader has not come back"
    assert anna not in world.group().members


def test_the_longest_rebalance_timeout_counts() -> None:
    world = ClassicWorld()
    anna, _ = world.enter(rebalance_ms=20_000, session_ms=100_000)
    bert, _ = world.enter(rebalance_ms=50_000, session_ms=100_000)
    world.join(anna, rebalance_ms=20_000, session_ms=100_000)
    world.settle_generation([anna, bert])
    waiting = world.join(anna, rebalance_ms=20_000, session_ms=100_000)
    world.advance(49_999)
    assert not waiting.is_given
    world.advance(1)
    assert waiting.get().generation_id == 3


def test_a_closed_coordinator_writes_nothing_any_more() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    world.hold = True
    joining = world.join(bert, protocols=("range", "sticky"))
    world.join(anna)
    leading = world.sync(anna, {anna: b"0"})
    following = world.sync(bert)
    shard, timers = world.shard, world.timers
    world.fail_over()
    assert code(joining) == ErrorCode.NONE
    assert code(leading) == code(following) == MOVED.code
    world.lose(MOVED)
    assert classic_timers(timers) == []
    assert shard.groups.get("orders").state_name == "Dead"
