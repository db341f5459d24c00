"""LeaveGroup of the classic protocol."""

from headwater.base.errors import ErrorCode
from headwater.wire.messages.leave_group import MemberIdentity
from tests.support.worlds.classic_world import NOT_WRITTEN, ClassicWorld, code


def codes(world: ClassicWorld, *members: str | MemberIdentity) -> list[int]:
    return [each.error_code for each in world.leave(*members).get().members]


def static(member_id: str, instance: str) -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=instance)


def test_who_leaves_is_gone_at_once() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    assert codes(world, bert) == [ErrorCode.NONE]
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(bert) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(anna).get().generation_id == 3


def test_the_last_one_leaves_an_empty_group_behind() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    world.advance(5)
    left_ms = world.now_ms
    assert codes(world, anna) == [ErrorCode.NONE]
    group = world.group()
    assert (group.state_name, group.generation, group.leader_id) == ("Empty", 2, None)
    assert (group.protocol_type, group.protocol_name) == ("consumer", None)
    assert group.offsets_unused_since_ms("events", 7) == left_ms
    world.check_replay()
    replayed = world.replayed().groups.get("orders")
    assert (replayed.state_name, replayed.protocol_type) == ("Empty", "consumer")
    assert replayed.offsets_unused_since_ms("events", 7) == left_ms


def test_the_answer_waits_until_the_empty_group_is_safe() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    world.hold = True
    answer = world.leave(anna)
    assert not answer.is_given
    world.release()
    assert code(answer) == ErrorCode.NONE


def test_if_the_empty_group_cannot_be_stored_the_member_is_gone_all_the_same() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    world.fail_next = NOT_WRITTEN
    assert code(world.leave(anna)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state() == "Empty"
    world.check_replay()
    world.fail_over()
    assert world.state() == "Stable", "the next coordinator does not know, and finds out"
    world.advance(10_000)
    assert world.state() == "Empty"


def test_several_members_leave_with_one_rebalance() -> None:
    world = ClassicWorld()
    anna, bert, carl = world.stable_group(3)
    assert codes(world, bert, "nobody", carl) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert world.join(anna).get().generation_id == 4


def test_an_administrator_removes_static_members_by_their_names() -> None:
    world = ClassicWorld()
    member_id = world.join(instance="first").get().member_id
    wrong = static("another", "first")
    assert codes(world, wrong, static("", "none"), "") == [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert member_id in world.group().members
    answer = world.leave(static("", "first")).get()
    assert [(each.member_id, each.group_instance_id) for each in answer.members] == [("", "first")]
    assert world.state() == "Empty"


def test_an_id_that_was_handed_out_can_be_given_back() -> None:
    world = ClassicWorld()
    pending = world.join().get().member_id
    assert codes(world, pending) == [ErrorCode.NONE]
    assert world.group().pending_ids == set()
    assert world.timers_of_groups() == []
    assert world.state() == "Empty"


def test_a_rebalance_goes_on_when_the_one_it_waits_for_leaves() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    waiting = world.join(anna)
    world.leave(bert)
    assert waiting.get().generation_id == 3


def test_who_leaves_while_it_waits_is_answered() -> None:
    world = ClassicWorld()
    anna, bert = world.stable_group(2)
    joining = world.join(anna)
    world.leave(anna)
    assert code(joining) == ErrorCode.UNKNOWN_MEMBER_ID
    answer = world.join(bert)
    assert answer.get().leader == bert
    assert code(world.sync(bert, {bert: b"0"})) == ErrorCode.NONE


def test_there_must_be_such_a_group() -> None:
    world = ClassicWorld()
    assert code(world.leave("anna")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.leave("anna", group="")) == ErrorCode.INVALID_GROUP_ID
