"""What a follower asks for: everything once, and then only what has changed."""

from __future__ import annotations

import errno
import uuid
from typing import cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.following.partition import Condition, FollowedPartition
from headwater.replication.following.plan import FetchPlan
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, leader_batch, new_disk, open_log
from headwater.sim.campaigns.replica_set import OPTIONS
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog
from headwater.wire.messages.fetch import FetchRequest, FetchResponse

LEADER, NODE_ID = 1, 2


class FakePartition:
    """As much of a partition as a plan looks at."""

    def __init__(self, number: int, topic_id: int = 7) -> None:
        self.topic_partition = TopicPartition("topic", number)
        self.topic_id = uuid.UUID(int=topic_id)
        self.leader_epoch = 0
        self.log: PartitionLog = open_log(new_disk(number), DIRECTORY)
        self.storage_errors: list[LogStorageError] = []

    def storage_failed(self, error: LogStorageError) -> None:
        self.storage_errors.append(error)


def new_plan(*numbers: int) -> tuple[FetchPlan, list[Partition]]:
    plan = FetchPlan(LEADER, NODE_ID, lambda: 3)
    partitions = [cast(Partition, FakePartition(number)) for number in numbers]
    for partition in partitions:
        plan.follow(partition, NOW_MS)
    return plan, partitions


def named(request: FetchRequest | None) -> list[int]:
    assert request is not None
    return sorted(each.partition for topic in request.topics for each in topic.partitions)


def forgotten(request: FetchRequest | None) -> list[int]:
    assert request is not None
    return sorted(each for topic in request.forgotten_topics_data for each in topic.partitions)


def session(request: FetchRequest | None) -> tuple[int, int]:
    assert request is not None
    return request.session_id, request.session_epoch


def followed_in(plan: FetchPlan, number: int) -> FollowedPartition:
    (found,) = [each for each in plan if each.key[1] == number]
    return found


def write(plan: FetchPlan, number: int, offset: int) -> None:
    followed = followed_in(plan, number)
    followed.partition.log.append_as_follower(leader_batch(offset, b"v"), now_ms=NOW_MS)
    plan.moved(followed)


def test_a_session_names_everything_once() -> None:
    plan, _ = new_plan(0, 1, 2)
    request = plan.request(0, OPTIONS)
    assert (named(request), session(request)) == ([0, 1, 2], (0, 0))
    assert plan.answered(FetchResponse(session_id=9)) == []
    request = plan.request(0, OPTIONS)
    assert (named(request), session(request)) == ([], (9, 1))
    plan.answered(FetchResponse(session_id=9))
    write(plan, 1, 0)
    request = plan.request(0, OPTIONS)
    assert (named(request), session(request)) == ([1], (9, 2))
    assert request is not None
    (position,) = request.topics[0].partitions
    assert (position.fetch_offset, position.last_fetched_epoch) == (1, 0)


def test_partitions_come_and_go_within_a_session() -> None:
    plan, partitions = new_plan(0, 1)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan.leave(partitions[0])
    plan.follow(cast(Partition, FakePartition(5)), NOW_MS)
    request = plan.request(0, OPTIONS)
    assert (named(request), forgotten(request)) == ([5], [0])
    plan.answered(FetchResponse(session_id=9))
    # One that left and came back is named, not forgotten.
    plan.leave(partitions[1])
    plan.follow(partitions[1], NOW_MS)
    request = plan.request(0, OPTIONS)
    assert (named(request), forgotten(request)) == ([1], [])


def test_a_partition_that_pauses_is_out_of_the_session_for_so_long() -> None:
    plan, _ = new_plan(0, 1)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan.pause(followed_in(plan, 0), 100.0, 1_600)
    request = plan.request(150, OPTIONS)
    assert (named(request), forgotten(request)) == ([], [0])
    plan.answered(FetchResponse(session_id=9))
    request = plan.request(200, OPTIONS)
    assert (named(request), forgotten(request)) == ([0], [])


def test_a_log_that_has_failed_is_not_fetched_for() -> None:
    plan, [partition] = new_plan(0)
    failure = partition.log.fail(OSError(errno.EIO, "the disk is gone"))
    plan.follow(partition, NOW_MS)
    # Its position is that of a replica that keeps up: a leader that heard of it would believe so.
    assert plan.request(0, OPTIONS) is None
    assert plan.failed_count == 1
    assert cast(FakePartition, partition).storage_errors == [failure]


def test_a_plan_with_nothing_to_fetch_says_when_there_will_be() -> None:
    plan, _ = new_plan(0, 1)
    plan.pause(followed_in(plan, 0), 100.0, 1_600)
    plan.halt(followed_in(plan, 1), Condition.AWAITS_ROLE)
    assert plan.request(150, OPTIONS) is None
    assert plan.wait_ms(150) == 50
    assert named(plan.request(200, OPTIONS)) == [0]
    plan.halt(followed_in(plan, 0), Condition.FAILED)
    assert plan.request(300, OPTIONS) is None
    assert plan.wait_ms(300) is None
    assert plan.failed_count == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
def test_a_session_that_the_leader_does_not_know_starts_again(code: ErrorCode) -> None:
    plan, _ = new_plan(0, 1)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan.request(0, OPTIONS)
    assert plan.answered(FetchResponse(error_code=code)) == []
    request = plan.request(0, OPTIONS)
    assert (named(request), session(request)) == ([0, 1], (0, 0))
    # If even that is refused, something else is wrong, and asking at once would not help.
    with pytest.raises(KafkaError, match=code.name):
        plan.answered(FetchResponse(error_code=code))


def test_a_leader_without_room_for_sessions_is_told_everything_each_time() -> None:
    plan, _ = new_plan(0, 1)
    for _ in range(3):
        request = plan.request(0, OPTIONS)
        assert (named(request), session(request)) == ([0, 1], (0, 0))
        plan.answered(FetchResponse(session_id=0))


def test_no_answer_means_a_new_session() -> None:
    plan, _ = new_plan(0, 1)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan.request(0, OPTIONS)
    plan.failed()
    assert named(plan.request(0, OPTIONS)) == [0, 1]


def test_another_byte_limit_is_told_to_the_leader() -> None:
    plan, _ = new_plan(0)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    request = plan.request(0, OPTIONS._replace(max_partition_bytes=77))
    assert request is not None
    assert [each.partition_max_bytes for each in request.topics[0].partitions] == [77]


def test_the_log_start_is_told_when_it_has_changed() -> None:
    plan, _ = new_plan(0)
    write(plan, 0, 0)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    followed = followed_in(plan, 0)
    plan.moved(followed)
    assert named(plan.request(0, OPTIONS)) == []
    plan.answered(FetchResponse(session_id=9))
    followed.partition.log.log_start_offset = 1
    plan.moved(followed)
    request = plan.request(0, OPTIONS)
    assert request is not None
    assert [each.log_start_offset for each in request.topics[0].partitions] == [1]


def test_epochs_of_a_session_start_over_before_they_overflow() -> None:
    plan, _ = new_plan(0)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan._session._epoch = 2**31 - 1
    assert session(plan.request(0, OPTIONS)) == (9, 2**31 - 1)
    plan.answered(FetchResponse(session_id=9))
    assert session(plan.request(0, OPTIONS)) == (9, 1)


def test_a_topic_that_was_made_again_is_another() -> None:
    plan, partitions = new_plan(0)
    plan.request(0, OPTIONS)
    plan.answered(FetchResponse(session_id=9))
    plan.leave(partitions[0])
    plan.follow(cast(Partition, FakePartition(0, topic_id=8)), NOW_MS)
    request = plan.request(0, OPTIONS)
    assert request is not None
    assert [topic.topic_id.int for topic in request.topics] == [8]
    assert [topic.topic_id.int for topic in request.forgotten_topics_data] == [7]


def test_all_partitions_of_another_plan_are_taken_over_as_they_are() -> None:
    plan, _ = new_plan(0)
    other, _ = new_plan(1, 2, 3)
    for each in (plan, other):
        each.request(0, OPTIONS)
        each.answered(FetchResponse(session_id=9))
    other.pause(followed_in(other, 2), 0.0, 1_600)
    other.halt(followed_in(other, 3), Condition.FAILED)
    plan.adopt(other)
    assert (len(plan), len(other)) == (4, 0)
    assert named(plan.request(50, OPTIONS)) == [1]
    plan.answered(FetchResponse(session_id=9))
    assert named(plan.request(100, OPTIONS)) == [2]
    assert plan.failed_count == 1
    assert other.request(200, OPTIONS) is None
