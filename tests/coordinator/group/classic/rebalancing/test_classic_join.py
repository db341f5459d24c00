"""JoinGroup of the classic protocol."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.sessions import NEWCOMER_TIMEOUT_MS
from tests.support.worlds.classic_world import (
    GROUP,
    MOVED,
    NOT_WRITTEN,
    REBALANCE_MS,
    SESSION_MS,
    ClassicWorld,
    code,
    subscription,
)


def test_a_member_gets_its_id_first_and_comes_back_with_it() -> None:
    world = ClassicWorld()
    first = world.join(client_id="app").get()
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("app-")
    assert world.group().members == {}
    second = world.join(first.member_id).get()
    assert (second.error_code, second.generation_id) == (ErrorCode.NONE, 1)
    assert (second.leader, second.member_id) == (first.member_id, first.member_id)


@pytest.mark.parametrize("version", range(4))
def test_older_versions_join_at_once(version: int) -> None:
    world = ClassicWorld()
    answer = world.join(version=version).get()
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_id in world.group().members


def test_an_id_that_nobody_comes_back_with_is_forgotten() -> None:
    world = ClassicWorld()
    member_id = world.join().get().member_id
    world.advance(SESSION_MS - 1)
    assert member_id in world.group().pending_ids
    world.advance(1)
    assert world.group().pending_ids == set()
    assert code(world.join(member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_handed_an_id() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    bert, waiting = world.enter()
    carl = world.join().get().member_id
    world.join(anna)
    assert not waiting.is_given
    world.join(carl)
    assert len(world.group().members) == 3
    assert waiting.get().member_id == bert


def test_a_pending_member_that_does_not_come_back_does_not_hold_up_the_others() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    _, waiting = world.enter()
    world.join()
    world.join(anna)
    world.advance(SESSION_MS)
    assert waiting.get().generation_id == 2


def test_a_static_member_cannot_take_an_id_that_was_handed_out() -> None:
    world = ClassicWorld()
    member_id = world.join().get().member_id
    assert code(world.join(member_id, instance="first")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_member_leads_and_hears_what_all_want() -> None:
    world = ClassicWorld()
    anna, first = world.enter(protocols={"range": subscription("a")})
    assert first.get().leader == anna
    bert, follower = world.enter(protocols={"range": subscription("b")})
    leader = world.join(anna, protocols={"range": subscription("a", "c")})
    answer = leader.get()
    assert (answer.leader, answer.generation_id, answer.protocol_name) == (anna, 2, "range")
    assert {each.member_id: each.metadata for each in answer.members} == {
        anna: subscription("a", "c"),
        bert: subscription("b"),
    }
    assert (follower.get().leader, follower.get().members) == (anna, [])


def test_the_members_vote_on_the_strategy() -> None:
    world = ClassicWorld()
    anna, _ = world.enter(protocols=("range", "sticky"))
    bert, _ = world.enter(protocols=("sticky", "range"))
    _, answer = world.enter(protocols=("other", "sticky", "range"))
    world.join(anna, protocols=("range", "sticky"))
    world.join(bert, protocols=("sticky", "range"))
    assert answer.get().protocol_name == "sticky"


def test_who_supports_nothing_that_all_support_is_refused() -> None:
    world = ClassicWorld()
    world.enter(protocols=("range", "sticky"))
    answer = world.join(protocols=("roundrobin",))
    assert code(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert len(world.group().pending_ids) == 0
    # "sticky" is supported by one, but after a second member only "range" is by all.
    world.enter(protocols=("range",))
    assert code(world.join(protocols=("sticky",))) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", ("range",)), ("", ("range",)), ("consumer", ())]
)
def test_the_protocol_type_is_that_of_the_group(
    protocol_type: str, protocols: tuple[str, ...]
) -> None:
    world = ClassicWorld()
    world.enter()
    answer = world.join(protocol_type=protocol_type, protocols=protocols)
    assert code(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", ("range",)), ("consumer", ())])
def test_a_group_needs_a_type_and_a_protocol(
    protocol_type: str, protocols: tuple[str, ...]
) -> None:
    world = ClassicWorld()
    answer = world.join(protocol_type=protocol_type, protocols=protocols)
    assert code(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert len(world.shard.groups) == 0
    assert world.topic == []


def test_a_group_has_a_name() -> None:
    assert code(ClassicWorld().join(group="")) == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("session_ms", "expected"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (20_000, ErrorCode.MEMBER_ID_REQUIRED),
        (20_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_sessions_have_bounds(session_ms: int, expected: ErrorCode) -> None:
    world = ClassicWorld({"group.max.session.timeout.ms": "20000"})
    assert code(world.join(session_ms=session_ms)) == expected


def test_an_unknown_member_is_told_so() -> None:
    world = ClassicWorld()
    assert code(world.join("nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    world.stable_group(1)
    assert code(world.join("nobody")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.join("nobody", instance="none")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody_but_keeps_its_members() -> None:
    world = ClassicWorld({"group.max.size": "2"})
    anna, bert = world.stable_group(2)
    assert code(world.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.state() == "Stable"
    assert code(world.join(bert)) == ErrorCode.NONE
    waiting = world.join(anna)
    assert world.state() == "PreparingRebalance"
    assert world.join().get().error_code == ErrorCode.MEMBER_ID_REQUIRED
    world.join(bert)
    assert not waiting.is_given, "the rebalance waits for the pending member"
    pending_id = next(iter(world.group().pending_ids))
    assert code(world.join(pending_id)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert waiting.get().generation_id == 3


def test_the_last_to_join_have_to_go_when_the_limit_was_lowered() -> None:
    world = ClassicWorld()
    anna, bert, carl = world.stable_group(3)
    world.settings = world.settings.from_texts({"broker.id": "0", "group.max.size": "2"})
    world.fail_over()
    assert world.state() == "PreparingRebalance"
    first, second = world.join(bert), world.join(carl)
    assert code(world.join(anna)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (code(first), code(second)) == (ErrorCode.NONE, ErrorCode.NONE)
    assert set(world.group().members) == {bert, carl}


def test_a_member_that_lost_the_answer_gets_it_again() -> None:
    world = ClassicWorld()
    anna, first = world.enter()
    again = world.join(anna)
    assert again.get() == first.get()
    assert world.state() == "CompletingRebalance"


def test_other_protocols_during_the_second_half_begin_it_anew() -> None:
    world = ClassicWorld()
    anna, _ = world.enter()
    waiting = world.sync("nobody")
    assert code(waiting) == ErrorCode.UNKNOWN_MEMBER_ID
    again = world.join(anna, protocols=("range", "sticky"))
    assert again.get().generation_id == 2


def test_a_stable_group_ignores_members_with_nothing_new() -> None:
    world = ClassicWorld()
    _, bert = world.stable_group(2)
    answer = world.join(bert).get()
    assert (answer.generation_id, answer.members) == (2, [])
    assert world.state() == "Stable"


def test_a_member_that_asks_twice_is_answered_twice() -> None:
    world = ClassicWorld()
    anna, _ = world.stable_group(2)
    first, second = world.join(anna), world.join(anna)
    assert code(first) == ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.is_given


def test_a_new_member_waits_for_five_minutes_at_most() -> None:
    world = ClassicWorld({"group.max.session.timeout.ms": "9000000"})
    anna = world.stable_group(1, session_ms=9_000_000, rebalance_ms=9_000_000)[0]
    waiting = world.join(version=3, session_ms=9_000_000, rebalance_ms=9_000_000)
    world.advance(NEWCOMER_TIMEOUT_MS - 1)
    assert not waiting.is_given
    world.advance(1)
    assert code(waiting) == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group().members) == [anna]


def test_a_group_is_stored_when_it_comes_into_being() -> None:
    world = ClassicWorld()
    world.join()
    assert len(world.topic) == 1
    world.check_replay()
    assert world.state() == "Empty"


def test_a_group_that_cannot_be_stored_does_not_exist() -> None:
    world = ClassicWorld({"group.initial.rebalance.delay.ms": "500"})
    world.fail_next = NOT_WRITTEN
    assert code(world.join(version=0)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(world.shard.groups) == 0
    assert world.timers_of_groups() == []
    world.check_replay()


def test_the_first_version_has_no_rebalance_timeout() -> None:
    world = ClassicWorld()
    member_id = world.join(version=0, rebalance_ms=-1).get().member_id
    assert world.group().members[member_id].rebalance_timeout_ms == SESSION_MS
    assert world.group().rebalance_timeout_ms < REBALANCE_MS


def test_other_languages_than_that_of_consumers_are_spoken_too() -> None:
    world = ClassicWorld()
    member_id = world.join(protocol_type="connect", protocols={"v1": b"\xff"}, version=3).get()
    assert world.group(GROUP).protocol_type == "connect"
    assert member_id.protocol_name == "v1"


@pytest.mark.parametrize(("error", "heard"), [(MOVED, MOVED.code), (NOT_WRITTEN, ErrorCode.NONE)])
def test_a_generation_that_was_not_told_ends_with_its_coordinator(
    error: KafkaError, heard: ErrorCode
) -> None:
    """The next one begins at the same number, and would have another member assign in it."""
    world = ClassicWorld({"group.initial.rebalance.delay.ms": "0"})
    world.hold = True
    joined = world.join(version=3)
    assert not joined.is_given
    world.lose(error)
    assert code(joined) == heard
