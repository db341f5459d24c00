"""Commits, fetches and deletions of offsets, one by one."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.group.offsets.commit import Committer
from headwater.coordinator.group.offsets.fetch import FetchedOffset
from headwater.coordinator.outcome import ProducerIdentity
from tests.support.worlds.offset_world import ORDERS, OffsetWorld

PRODUCER = ProducerIdentity(7, 0)
OTHER = ProducerIdentity(8, 0)
MEMBER = Committer("member", None, 3)
TOPIC_ID = uuid.UUID(int=5)
NEW_TOPIC_ID = uuid.UUID(int=6)


def refusal(operation: Callable[..., object], *arguments: object, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        operation(*arguments, **options)
    return caught.value.code


def test_a_commit_from_outside_makes_a_group_of_offsets_alone() -> None:
    world = OffsetWorld()
    answer = world.commit("g", 5, metadata="note", leader_epoch=2)
    assert answer.get() == [ErrorCode.NONE]
    assert world.fetch("g") == FetchedOffset(ORDERS, 5, 2, "note")
    group = world.shard.groups.get("g")
    assert (group.state_name, group.protocol_type, group.is_empty) == ("Empty", "", True)
    world.check_replay()


def test_nothing_is_answered_before_the_commit_is_safe() -> None:
    world = OffsetWorld()
    world.hold = True
    answer = world.commit("g", 5)
    assert not answer.is_given
    world.release()
    assert answer.get() == [ErrorCode.NONE]


def test_a_commit_that_cannot_be_written_changes_nothing() -> None:
    world = OffsetWorld()
    world.fail_next = KafkaError(ErrorCode.NOT_COORDINATOR)
    assert refusal(world.commit("g", 5).get) is ErrorCode.NOT_COORDINATOR
    assert world.fetch("g").offset == -1
    assert world.shard.groups.find("g") is None


def test_what_is_not_known_has_no_offset_and_no_error() -> None:
    world = OffsetWorld()
    assert world.fetch("nobody") == FetchedOffset(ORDERS, -1, -1, "", ErrorCode.NONE)
    assert world.offsets("nobody") == {}
    world.commit("g", 5)
    assert world.fetch("g", TopicPartition("orders", 1)).offset == -1


@pytest.mark.parametrize(
    ("api_version", "code"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_member_of_no_group_cannot_commit(api_version: int, code: ErrorCode) -> None:
    world = OffsetWorld()
    refused = refusal(world.commit, "g", 5, committer=MEMBER, api_version=api_version)
    assert refused is code
    assert world.topic == []


def test_a_member_of_no_group_cannot_commit_in_a_transaction() -> None:
    world = OffsetWorld()
    refused = refusal(world.commit_in_transaction, PRODUCER, "g", 5, committer=MEMBER)
    assert refused is ErrorCode.ILLEGAL_GENERATION


def test_a_stranger_cannot_commit_for_a_group_that_exists() -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    assert refusal(world.commit, "g", 6, committer=MEMBER) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.fetch("g").offset == 5


def test_metadata_have_a_limit() -> None:
    world = OffsetWorld({"offset.metadata.max.bytes": "10"})
    assert world.commit("g", 5, metadata="x" * 10).get() == [ErrorCode.NONE]
    assert world.commit("g", 6, metadata="x" * 11).get() == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert world.fetch("g").offset == 5


def test_metadata_that_no_record_can_hold_are_too_large() -> None:
    world = OffsetWorld({"offset.metadata.max.bytes": "100000"})
    assert world.commit("g", 5, metadata="x" * 32_767).get() == [ErrorCode.NONE]
    assert world.commit("g", 6, metadata="é" * 16_384).get() == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE
    ]


def test_transactional_offsets_count_when_the_transaction_commits() -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    world.commit_in_transaction(PRODUCER, "g", 9)
    assert world.fetch("g").offset == 5
    assert world.fetch("g", require_stable=True) == FetchedOffset(
        ORDERS, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
    )
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.fetch("g", require_stable=True).offset == 9
    world.check_replay()


def test_an_aborted_transaction_leaves_no_trace() -> None:
    world = OffsetWorld()
    world.commit_in_transaction(PRODUCER, "g", 9)
    world.end_transaction(PRODUCER, is_committed=False)
    assert world.fetch("g", require_stable=True).offset == -1
    world.check_replay()


def test_a_marker_of_the_next_epoch_ends_the_transaction() -> None:
    world = OffsetWorld()
    world.commit_in_transaction(PRODUCER, "g", 9)
    world.end_transaction(ProducerIdentity(7, 1), is_committed=True)
    assert world.fetch("g").offset == 9


def test_of_two_commits_the_later_record_wins() -> None:
    world = OffsetWorld()
    world.commit_in_transaction(PRODUCER, "g", 9)
    world.commit("g", 5)
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.fetch("g").offset == 5
    world.check_replay()


def test_two_transactions_on_one_offset() -> None:
    world = OffsetWorld()
    world.commit_in_transaction(PRODUCER, "g", 9)
    world.commit_in_transaction(OTHER, "g", 12)
    world.end_transaction(OTHER, is_committed=True)
    assert world.fetch("g").offset == 12
    assert world.fetch("g", require_stable=True).error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.fetch("g", require_stable=True).offset == 12


def test_all_offsets_of_a_group() -> None:
    world = OffsetWorld()
    second = TopicPartition("orders", 1)
    world.commit("g", 5)
    world.commit("g", 6, second)
    world.commit("other", 7)
    world.commit_in_transaction(PRODUCER, "g", 9, second)
    assert world.offsets("g") == {ORDERS: 5, second: 6}
    stable = world.shard.offsets.fetch("g", None, require_stable=True)
    assert stable == [
        FetchedOffset(ORDERS, 5),
        FetchedOffset(second, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ]


def test_offsets_of_a_topic_that_was_made_anew_mean_nothing() -> None:
    world = OffsetWorld()
    world.commit("g", 5, topic_id=TOPIC_ID)
    assert world.fetch("g", topic_id=TOPIC_ID).offset == 5
    assert world.fetch("g").offset == 5
    assert world.fetch("g", topic_id=NEW_TOPIC_ID).offset == -1


def test_offsets_are_deleted_on_request() -> None:
    world = OffsetWorld()
    world.commit("g", 5)
    other = TopicPartition("orders", 1)
    assert world.delete("g", [other, ORDERS, ORDERS]).get() == [ErrorCode.NONE] * 3
    assert len(world.topic) == 2
    assert world.offsets("g") == {}
    assert world.shard.groups.find("g") is not None
    world.check_replay()


def test_pending_offsets_are_deleted_too() -> None:
    world = OffsetWorld()
    world.commit_in_transaction(PRODUCER, "g", 9)
    world.delete("g")
    assert world.fetch("g", require_stable=True).error_code is ErrorCode.NONE
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.offsets("g") == {}
    world.check_replay()


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    assert refusal(OffsetWorld().delete, "g") is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_go_with_their_topic() -> None:
    world = OffsetWorld()
    payments = TopicPartition("payments", 0)
    world.commit("g", 5)
    world.commit("g", 6, payments)
    world.commit("h", 7, topic_id=NEW_TOPIC_ID)
    world.commit_in_transaction(PRODUCER, "i", 8)
    world.delete_topic("orders", TOPIC_ID)
    assert world.offsets("g") == {payments: 6}
    # Committed for the topic that has the name now.
    assert world.offsets("h") == {ORDERS: 7}
    world.end_transaction(PRODUCER, is_committed=True)
    assert world.offsets("i") == {}
    world.check_replay()


def test_the_offsets_of_many_groups_go_in_many_batches() -> None:
    world = OffsetWorld()
    long_name = "x" * 1_000
    for number in range(500):
        world.commit(f"{long_name}{number}", number)
    world.delete_topic("orders")
    assert all(world.offsets(f"{long_name}{number}") == {} for number in range(500))
    world.check_replay()
