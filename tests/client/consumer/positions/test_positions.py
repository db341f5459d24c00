"""Positions with a played cluster: committed offsets, resets, and what a new leader has."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.offsets import OffsetTime
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import LogTruncationError, NoOffsetForPartitionError
from headwater.client.consumer.fetching.partition_state import PartitionState, PositionStep
from headwater.client.consumer.positions.reset import (
    EARLIEST,
    LATEST,
    NONE,
    OffsetReset,
    parse_offset_reset,
)
from headwater.client.machines.completion import Completion
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.support.fakes.fetches import (
    TOPIC,
    FakeBroker,
    FakeLog,
    fake_metadata,
    metadata_response,
    partition,
)
from tests.support.fakes.lone_consumer import LoneConsumer

Committed = dict[TopicPartition, OffsetAndMetadata | None]


class FakeCommits:
    """A group's offsets, told when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[TopicPartition], Completion[Committed]]] = []

    def fetch(self, partitions: Collection[TopicPartition], now_s: float) -> Completion[Committed]:
        completion: Completion[Committed] = Completion()
        self.asked.append((list(partitions), completion))
        return completion


def one_partition(
    reset: OffsetReset = EARLIEST, commits: FakeCommits | None = None
) -> tuple[LoneConsumer, PartitionState]:
    consumer = LoneConsumer(fake_metadata({0: 1}), default_reset=reset, committed=commits)
    consumer.subscription.assign([partition(0)])
    consumer.step()
    return consumer, consumer.subscription.state(partition(0))


def listed(offset: int, *, error_code: int = 0, epoch: int = 0) -> ListOffsetsResponse:
    found = ListOffsetsPartitionResponse(
        partition_index=0, offset=offset, error_code=error_code, leader_epoch=epoch
    )
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[found])])


def epoch_end(epoch: int, end_offset: int, error_code: int = 0) -> OffsetForLeaderEpochResponse:
    end = EpochEndOffset(
        partition=0, leader_epoch=epoch, end_offset=end_offset, error_code=error_code
    )
    return OffsetForLeaderEpochResponse(
        topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=[end])]
    )


@pytest.mark.parametrize(
    ("reset", "timestamp"),
    [
        (EARLIEST, OffsetTime.EARLIEST),
        (LATEST, OffsetTime.LATEST),
        (OffsetReset("by_duration", 40_000), 60_000),
    ],
)
def test_without_a_group_the_reset_says_where_to_begin(reset: OffsetReset, timestamp: int) -> None:
    consumer, state = one_partition(reset)
    request = consumer.only(ListOffsetsRequest)
    assert request.topics[0].partitions[0].timestamp == timestamp
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(17))
    assert (state.step, state.offset, state.fetch_offset) == (PositionStep.FETCHING, 17, 17)
    consumer.step()
    assert consumer.only(FetchRequest).topics[0].partitions[0].fetch_offset == 17


def test_a_time_after_the_last_record_means_the_end() -> None:
    consumer, state = one_partition(OffsetReset("by_duration", 10))
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(-1))
    consumer.step()
    request = consumer.only(ListOffsetsRequest)
    assert request.topics[0].partitions[0].timestamp == OffsetTime.LATEST
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(40))
    assert state.offset == 40


def test_what_is_committed_comes_first() -> None:
    commits = FakeCommits()
    consumer, state = one_partition(commits=commits)
    ((asked, completion),) = commits.asked
    assert asked == [partition(0)]
    assert not consumer.asked(ListOffsetsRequest)
    completion.succeed({partition(0): OffsetAndMetadata(33)})
    assert (state.step, state.offset) == (PositionStep.FETCHING, 33)


def test_without_a_committed_offset_the_reset_says_where() -> None:
    commits = FakeCommits()
    consumer, _ = one_partition(LATEST, commits)
    commits.asked[0][1].succeed({partition(0): None})
    consumer.step()
    request = consumer.only(ListOffsetsRequest)
    assert request.topics[0].partitions[0].timestamp == OffsetTime.LATEST


def test_without_a_committed_offset_and_a_reset_the_user_hears_of_it() -> None:
    commits = FakeCommits()
    consumer, state = one_partition(NONE, commits)
    commits.asked[0][1].succeed({})
    consumer.step()
    failure = consumer.side.take_failure()
    assert isinstance(failure, NoOffsetForPartitionError)
    assert failure.topic_partition == partition(0)
    assert not consumer.asked(ListOffsetsRequest)
    consumer.seek(partition(0), 3)
    assert state.step is PositionStep.FETCHING


def test_who_seeks_before_polling_does_not_hear_that_there_was_no_offset() -> None:
    consumer, _ = one_partition(NONE)
    consumer.seek(partition(0), 3)
    assert consumer.side.take_failure() is None


def test_who_has_sought_meanwhile_keeps_that() -> None:
    commits = FakeCommits()
    consumer, state = one_partition(commits=commits)
    consumer.seek(partition(0), 5)
    commits.asked[0][1].succeed({partition(0): OffsetAndMetadata(33)})
    assert state.offset == 5


def test_a_failure_to_learn_what_is_committed_is_told_and_tried_again() -> None:
    commits = FakeCommits()
    consumer, _ = one_partition(commits=commits)
    commits.asked[0][1].fail(KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    failure = consumer.side.take_failure()
    assert failure is not None and failure.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    consumer.step()
    assert len(commits.asked) == 1
    consumer.now_s += 5.0
    consumer.step()
    assert len(commits.asked) == 2


def test_the_answer_to_a_question_that_was_taken_back_does_not_count() -> None:
    consumer, state = one_partition(EARLIEST)
    state.request_reset(LATEST)
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(0))
    assert state.step is PositionStep.RESETTING
    consumer.step()
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(99))
    assert state.offset == 99


def test_a_leader_that_moved_is_asked_again_after_a_pause_and_with_new_metadata() -> None:
    consumer, state = one_partition()
    consumer.ignore_metadata()
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(0, error_code=6))
    consumer.step()
    assert not consumer.asked(ListOffsetsRequest)
    consumer.now_s += 5.0
    consumer.step()
    assert len(consumer.asked(ListOffsetsRequest)) == 1
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(8))
    assert state.offset == 8


def test_a_refusal_that_lasts_is_told() -> None:
    consumer, _ = one_partition()
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(0, error_code=29))
    failure = consumer.side.take_failure()
    assert failure is not None and failure.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def metadata_comes(consumer: LoneConsumer, partitions: dict[int, int]) -> None:
    """The next question about metadata, after its pause, and this answer to it."""
    consumer.now_s += 5.0
    consumer.step()
    assert consumer.answer_all(MetadataRequest, lambda _: metadata_response(partitions)) == 1
    consumer.step()


def test_a_partition_that_does_not_exist_is_told_once() -> None:
    consumer = LoneConsumer(fake_metadata({0: 1}))
    consumer.subscription.assign([partition(0), partition(5)])
    consumer.step()
    # What is known may be from before the partition was added, and so may an answer under way.
    assert consumer.side.take_failure() is None
    metadata_comes(consumer, {0: 1})
    assert consumer.side.take_failure() is None
    metadata_comes(consumer, {0: 1})
    failure = consumer.side.take_failure()
    assert failure is not None and failure.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata_comes(consumer, {0: 1})
    assert consumer.side.take_failure() is None
    consumer.answer_all(ListOffsetsRequest, lambda _: listed(0))
    assert consumer.subscription.state(partition(0)).has_position


def test_a_partition_that_was_just_added_is_waited_for() -> None:
    consumer = LoneConsumer(fake_metadata({0: 1}))
    consumer.subscription.assign([partition(0), partition(1)])
    consumer.step()
    metadata_comes(consumer, {0: 1})
    metadata_comes(consumer, {0: 1, 1: 1})
    assert consumer.side.take_failure() is None
    assert consumer.subscription.state(partition(1)).leader_id == 1


# -- truncation ----------------------------------------------------------------------------------


def moved_leader(reset: OffsetReset) -> tuple[LoneConsumer, PartitionState]:
    """A consumer that has read ten records in epoch 0; then epoch 4 begins."""
    consumer = LoneConsumer(fake_metadata({0: 1}), default_reset=reset)
    consumer.subscription.assign([partition(0)])
    consumer.seek(partition(0), 0)
    consumer.step()
    log = FakeLog()
    log.append(10)
    consumer.answer_all(FetchRequest, FakeBroker({0: log}).answer)
    assert len(consumer.poll()) == 10
    consumer.answer_all(MetadataRequest, lambda _: metadata_response({0: 1}, epoch=4))
    state = consumer.subscription.state(partition(0))
    assert (state.offset, state.offset_epoch) == (10, 0)
    return consumer, state


def test_a_position_is_validated_when_the_leader_epoch_grows() -> None:
    consumer, state = moved_leader(EARLIEST)
    assert state.step is PositionStep.VALIDATING
    consumer.step()
    asked = consumer.only(OffsetForLeaderEpochRequest).topics[0].partitions[0]
    assert (asked.leader_epoch, asked.current_leader_epoch) == (0, 4)
    assert not consumer.fetches
    consumer.answer_all(OffsetForLeaderEpochRequest, lambda _: epoch_end(0, 10))
    consumer.step()
    asked = consumer.only(FetchRequest).topics[0].partitions[0]
    assert (asked.fetch_offset, asked.current_leader_epoch) == (10, 4)


def test_a_truncated_log_is_read_again_from_where_it_differs() -> None:
    consumer, state = moved_leader(LATEST)
    consumer.step()
    consumer.answer_all(OffsetForLeaderEpochRequest, lambda _: epoch_end(0, 6))
    assert (state.step, state.offset) == (PositionStep.FETCHING, 6)
    assert consumer.side.take_failure() is None


def test_an_epoch_that_the_leader_does_not_know_is_reset() -> None:
    consumer, state = moved_leader(EARLIEST)
    consumer.step()
    consumer.answer_all(OffsetForLeaderEpochRequest, lambda _: epoch_end(-1, -1))
    assert state.step is PositionStep.RESETTING


@pytest.mark.parametrize(("epoch", "end", "divergent"), [(0, 6, 6), (-1, -1, None)])
def test_without_a_reset_truncation_is_told(epoch: int, end: int, divergent: int | None) -> None:
    consumer, state = moved_leader(NONE)
    consumer.step()
    consumer.answer_all(OffsetForLeaderEpochRequest, lambda _: epoch_end(epoch, end))
    failure = consumer.side.take_failure()
    assert isinstance(failure, LogTruncationError)
    assert failure.divergent_offset == divergent
    assert state.offset == 10


def test_validation_waits_for_what_is_buffered() -> None:
    consumer = LoneConsumer(fake_metadata({0: 1}))
    consumer.subscription.assign([partition(0)])
    consumer.seek(partition(0), 0)
    consumer.step()
    log = FakeLog()
    log.append(10)
    consumer.answer_all(FetchRequest, FakeBroker({0: log}).answer)
    consumer.answer_all(MetadataRequest, lambda _: metadata_response({0: 1}, epoch=4))
    consumer.step()
    assert not consumer.asked(OffsetForLeaderEpochRequest)
    assert len(consumer.poll()) == 10
    consumer.step()
    assert len(consumer.asked(OffsetForLeaderEpochRequest)) == 1


def test_a_committed_epoch_is_validated_before_anything_is_fetched() -> None:
    commits = FakeCommits()
    consumer, _ = one_partition(commits=commits)
    commits.asked[0][1].succeed({partition(0): OffsetAndMetadata(33, "", 2)})
    consumer.step()
    assert consumer.only(OffsetForLeaderEpochRequest).topics[0].partitions[0].leader_epoch == 2
    assert not consumer.fetches


def test_old_metadata_do_not_take_back_an_epoch() -> None:
    consumer, state = moved_leader(EARLIEST)
    consumer.metadata.learn(metadata_response({0: 1}, epoch=3), [TOPIC])
    consumer.positions.metadata_changed()
    assert state.current_leader_epoch == 4


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("by_duration:PT6H", 21_600_000), ("by_duration:P1DT0.5S", 86_400_500)],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_offset_reset(text) == OffsetReset("by_duration", duration_ms)


@pytest.mark.parametrize(
    "text", ["", "first", "by_duration:", "by_duration:PT", "by_duration:P-1D"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(KafkaError, match=r"auto\.offset\.reset"):
        parse_offset_reset(text)
