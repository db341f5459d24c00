"""What offsets and deletion ask of a classic group."""

import pytest

from headwater.base.checks import InvariantError
from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.group import group_from, record_of
from headwater.coordinator.group.classic.stored.record import (
    group_metadata_tombstone,
    read_group_metadata_value,
)
from headwater.coordinator.group.group import Group, GroupKind
from tests.support.worlds.classic_world import ClassicWorld, subscription


def member(name: str, *topics: str, protocol_type: str = "consumer") -> ClassicMember:
    metadata = subscription(*topics) if topics else b"\xff"
    return ClassicMember(
        member_id=name,
        protocol_type=protocol_type,
        protocols={"range": metadata},
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        assignment=b"assigned",
    )


def group_of(*members: ClassicMember, state: ClassicState = ClassicState.STABLE) -> ClassicGroup:
    return ClassicGroup("orders", state=state, generation=3, protocol_name="range", members=members)


def commit_error(
    group: Group, member_id: str, generation: int, *, is_transactional: bool = False
) -> ErrorCode:
    try:
        group.check_offset_commit(
            member_id, None, generation, is_transactional=is_transactional, api_version=9
        )
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_group_that_has_only_offsets() -> None:
    group = ClassicGroup("orders")
    assert (group.kind, group.state_name, group.protocol_type) == (GroupKind.CLASSIC, "Empty", "")
    assert group.is_empty
    assert commit_error(group, "", -1) == ErrorCode.NONE
    assert commit_error(group, "anna", 0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert not group.is_subscribed_to("events")
    assert group.offsets_unused_since_ms("events", 7) == 7
    assert group.tombstones() == [group_metadata_tombstone("orders")]
    group.check_offset_fetch(None, -1)
    group.check_deletion()


def test_who_may_commit_to_a_group_with_members() -> None:
    group = group_of(member("anna", "events"))
    assert commit_error(group, "anna", 3) == ErrorCode.NONE
    assert commit_error(group, "anna", 2) == ErrorCode.ILLEGAL_GENERATION
    assert commit_error(group, "bert", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_error(group, "", -1, is_transactional=True) == ErrorCode.NONE
    assert commit_error(group, "anna", 2, is_transactional=True) == ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(KafkaError) as caught:
        group.check_offset_commit("anna", "none", 3, is_transactional=False, api_version=9)
    assert caught.value.code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("state", "plain", "transactional"),
    [
        (ClassicState.STABLE, ErrorCode.NONE, ErrorCode.NONE),
        (ClassicState.PREPARING_REBALANCE, ErrorCode.NONE, ErrorCode.NONE),
        (ClassicState.COMPLETING_REBALANCE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE),
        (
            ClassicState.DEAD,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ),
    ],
)
def test_commits_by_state(state: ClassicState, plain: ErrorCode, transactional: ErrorCode) -> None:
    group = group_of(member("anna", "events"), state=state)
    assert commit_error(group, "anna", 3) == plain
    assert commit_error(group, "anna", 3, is_transactional=True) == transactional


def test_a_group_with_members_cannot_be_deleted() -> None:
    for state in (
        ClassicState.STABLE,
        ClassicState.PREPARING_REBALANCE,
        ClassicState.COMPLETING_REBALANCE,
    ):
        with pytest.raises(KafkaError) as caught:
            group_of(member("anna", "events"), state=state).check_deletion()
        assert caught.value.code == ErrorCode.NON_EMPTY_GROUP
    dead = ClassicGroup("orders", state=ClassicState.DEAD)
    with pytest.raises(KafkaError) as caught:
        dead.check_deletion()
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError) as caught:
        dead.check_offset_fetch(None, -1)
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_topics_that_nobody_consumes_expire() -> None:
    group = group_of(member("anna", "a"), member("bert", "b"))
    assert group.is_subscribed_to("a")
    assert group.is_subscribed_to("b")
    assert group.offsets_unused_since_ms("a", 7) is None
    assert group.offsets_unused_since_ms("c", 7) == 7


def test_a_group_that_nobody_understands_uses_everything() -> None:
    group = group_of(member("anna", "a"), member("bert"))
    assert group.is_subscribed_to("c")
    assert group.offsets_unused_since_ms("c", 7) is None


def test_a_group_of_another_kind_uses_everything_and_subscribes_to_nothing() -> None:
    group = group_of(member("anna", protocol_type="connect"))
    assert not group.is_subscribed_to("a")
    assert group.offsets_unused_since_ms("a", 7) is None


def test_while_a_group_rebalances_nothing_expires() -> None:
    for state in (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE):
        group = group_of(member("anna", "a"), state=state)
        assert group.offsets_unused_since_ms("c", 7) is None


def test_offsets_of_an_empty_group_are_unused_since_it_is_empty() -> None:
    world = ClassicWorld()
    (anna,) = world.stable_group(1)
    world.advance(1_000)
    emptied_ms = world.now_ms
    world.leave(anna)
    world.advance(1_000)
    assert world.group().offsets_unused_since_ms("events", 7) == emptied_ms
    without_time = ClassicGroup("orders", protocol_type="consumer")
    assert without_time.offsets_unused_since_ms("events", 7) == 7


def test_members_are_stored_with_what_was_chosen_and_come_back_so() -> None:
    anna = ClassicMember(
        member_id="anna",
        group_instance_id="first",
        client_id="app",
        client_host="/192.0.2.9",
        protocol_type="consumer",
        protocols={"sticky": b"1", "range": b"2"},
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        assignment=b"assigned",
    )
    group = group_of(anna)
    value = record_of(group).value
    assert value is not None
    back = group_from("orders", read_group_metadata_value(value))
    assert (back.state, back.generation, back.leader_id) == (ClassicState.STABLE, 3, "anna")
    assert back.protocol_name == "range"
    (loaded,) = back.members.values()
    assert loaded.protocols == {"range": b"2"}
    assert (loaded.group_instance_id, loaded.assignment) == ("first", b"assigned")
    assert (loaded.client_id, loaded.client_host) == ("app", "/192.0.2.9")
    assert (loaded.session_timeout_ms, loaded.rebalance_timeout_ms) == (10_000, 60_000)


def test_only_the_transitions_of_the_table_are_possible() -> None:
    group = ClassicGroup("orders")
    with pytest.raises(InvariantError):
        group.move_to(ClassicState.STABLE, 1)
    group.move_to(ClassicState.PREPARING_REBALANCE, 2)
    assert (group.state_since_ms, group.previous_state) == (2, ClassicState.EMPTY)
