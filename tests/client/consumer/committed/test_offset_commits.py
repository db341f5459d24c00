"""Commits and committed offsets, request by request."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.commits import OffsetCommits
from headwater.client.consumer.committed.errors import CommitFailedError, not_a_member
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.kafka_errors import RebalanceInProgressError
from headwater.client.machines.ask import CoordinatorOf
from headwater.client.machines.completion import Completion
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.support.fakes.lone_machine import LoneMachine

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COORDINATOR = CoordinatorOf(CoordinatorKind.GROUP, "readers")
ID_A = uuid.UUID(int=10)


class Committing(LoneMachine):
    def __init__(self) -> None:
        self.coordinators = CoordinatorCache()
        self.coordinators.learn(COORDINATOR, 1)
        self.metadata = ClusterMetadata()
        self.identity: GroupIdentity | KafkaError = GroupIdentity("readers", 4, "me", None)
        self.commits = OffsetCommits(
            parse_settings(
                CONSUMER_SETTINGS,
                {"bootstrap.servers": "localhost:9092", "group.id": "readers"},
                {},
            ),
            coordinators=self.coordinators,
            metadata=self.metadata,
            identity=self._identity,
            policy=RetryPolicy(),
            generator=random.Random(1),
        )
        super().__init__(self.commits)

    def _identity(self) -> GroupIdentity:
        if isinstance(self.identity, KafkaError):
            raise self.identity
        return self.identity

    def learn_ids(self) -> None:
        topic = MetadataResponseTopic(name="a", topic_id=ID_A)
        self.metadata.learn(MetadataResponse(topics=[topic]), None)

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, is_retried: bool = True
    ) -> Completion[None]:
        given = {each: OffsetAndMetadata(offset, "m", 7) for each, offset in offsets.items()}
        return self.commits.commit(given, self.now_s, is_retried=is_retried)

    def committed(self, code: ErrorCode = ErrorCode.NONE) -> dict[TopicPartition, int]:
        """Answer a commit, by name; what it asked for."""
        request, _ = self.take(OffsetCommitRequest)
        self.answer(OffsetCommitRequest, commit_answer(request, code))
        return {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in request.topics
            for each in topic.partitions
        }


def commit_answer(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_what_a_commit_says() -> None:
    committing = Committing()
    completion = committing.commit({A1: 5, A0: 3, B0: 9})
    request, ask = committing.take(OffsetCommitRequest)
    assert (request.group_id, request.member_id) == ("readers", "me")
    assert request.generation_id_or_member_epoch == 4
    assert [topic.name for topic in request.topics] == ["a", "b"]
    [first, _] = request.topics[0].partitions
    assert (first.committed_offset, first.committed_metadata) == (3, "m")
    assert first.committed_leader_epoch == 7
    assert ask.target == COORDINATOR
    assert ask.version_max == 9, "the ids of the topics are not known"
    assert committing.committed() == {A0: 3, A1: 5, B0: 9}
    assert completion.result() is None


def test_topic_ids_are_used_where_they_are_known() -> None:
    committing = Committing()
    committing.learn_ids()
    completion = committing.commit({A0: 3})
    request, ask = committing.take(OffsetCommitRequest)
    assert request.topics[0].topic_id == ID_A and ask.version_max is None
    answer = commit_answer(request, ErrorCode.NONE)
    answer.topics[0].name, answer.topics[0].topic_id = "", ID_A
    committing.answer(OffsetCommitRequest, answer)
    assert completion.result() is None


def test_an_id_that_the_coordinator_does_not_know_is_followed_by_the_name() -> None:
    committing = Committing()
    committing.learn_ids()
    completion = committing.commit({A0: 3})
    committing.committed(ErrorCode.UNKNOWN_TOPIC_ID)
    committing.wait_for(OffsetCommitRequest)
    assert committing.take(OffsetCommitRequest)[1].version_max == 9
    committing.committed()
    assert completion.is_done


def test_nothing_is_committed_at_once() -> None:
    assert Committing().commit({}).is_done


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ],
)
def test_what_cannot_pass_fails_at_once(code: ErrorCode) -> None:
    committing = Committing()
    completion = committing.commit({A0: 3})
    committing.committed(code)
    error = completion.error
    assert isinstance(error, KafkaError) and error.code is code
    assert "'readers'" in str(error) and str(error).endswith(".")
    committing.wait(100)
    assert committing.is_quiet()


def test_errors_have_types() -> None:
    committing = Committing()
    lost, rebalancing = committing.commit({A0: 3}), None
    committing.committed(ErrorCode.ILLEGAL_GENERATION)
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        lost.result()
    rebalancing = committing.commit({A0: 3})
    committing.committed(ErrorCode.REBALANCE_IN_PROGRESS)
    with pytest.raises(RebalanceInProgressError, match="call poll"):
        rebalancing.result()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
    ],
)
def test_what_may_pass_is_tried_again_by_who_waits(code: ErrorCode | None) -> None:
    committing = Committing()
    completion = committing.commit({A0: 3})
    for _ in range(4):
        committing.wait_for(OffsetCommitRequest)
        if code is None:
            committing.fail(OffsetCommitRequest)
        else:
            committing.committed(code)
        assert committing.is_quiet() and not completion.is_done
    is_moved = code in (None, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert (committing.coordinators.get(COORDINATOR) is None) is is_moved
    committing.wait_for(OffsetCommitRequest)
    committing.committed()
    assert completion.result() is None


def test_who_does_not_wait_hears_of_it() -> None:
    committing = Committing()
    completion = committing.commit({A0: 3}, is_retried=False)
    committing.committed(ErrorCode.NOT_COORDINATOR)
    assert isinstance(completion.error, KafkaError)
    committing.wait(100)
    assert committing.is_quiet()


def test_trying_again_ends() -> None:
    committing = Committing()
    completion = committing.commit({A0: 3})
    for _ in range(200):
        if completion.is_done:
            break
        committing.wait_for(OffsetCommitRequest)
        committing.fail(OffsetCommitRequest)
    assert committing.now_s == pytest.approx(160, abs=2), "default.api.timeout.ms is a minute"
    assert isinstance(completion.error, KafkaError)


def test_who_is_no_member_cannot_commit() -> None:
    committing = Committing()
    committing.identity = not_a_member("readers")
    completion = committing.commit({A0: 3})
    assert committing.is_quiet()
    assert isinstance(completion.error, CommitFailedError)


def test_an_epoch_that_has_grown_meanwhile_is_used() -> None:
    committing = Committing()
    completion = committing.commit({A0: 3}, is_retried=False)
    committing.take(OffsetCommitRequest)
    committing.identity = GroupIdentity("readers", 5, "me", None)
    committing.committed(ErrorCode.STALE_MEMBER_EPOCH)
    assert committing.take(OffsetCommitRequest)[0].generation_id_or_member_epoch == 5
    committing.committed()
    assert completion.result() is None


def test_commits_wait_for_each_other_and_go_together() -> None:
    committing = Committing()
    first = committing.commit({A0: 1}, is_retried=False)
    committing.look()
    second = committing.commit({A0: 2, A1: 1}, is_retried=False)
    third = committing.commit({A0: 3}, is_retried=False)
    assert committing.committed() == {A0: 1}
    assert first.is_done and not second.is_done
    assert committing.committed() == {A0: 3, A1: 1}
    assert second.is_done and third.is_done
    assert committing.is_quiet()


def test_trying_again_does_not_undo_a_later_commit() -> None:
    committing = Committing()
    waiting = committing.commit({A0: 1})
    committing.look()
    committing.fail(OffsetCommitRequest)
    later = committing.commit({A0: 2}, is_retried=False)
    committing.wait_for(OffsetCommitRequest)
    committing.fail(OffsetCommitRequest)
    assert later.is_done and not waiting.is_done
    committing.wait_for(OffsetCommitRequest)
    assert committing.committed() == {A0: 2}, "which may have been done"
    assert waiting.result() is None


def test_a_commit_that_waited_meanwhile_comes_after_the_one_that_is_tried_again() -> None:
    committing = Committing()
    first = committing.commit({A0: 1, A1: 1})
    committing.look()
    second = committing.commit({A0: 2})
    committing.fail(OffsetCommitRequest)
    committing.wait_for(OffsetCommitRequest)
    assert committing.committed() == {A0: 2, A1: 1}
    assert first.result() is None and second.result() is None


def test_who_lets_go_of_partitions_can_wait_for_commits() -> None:
    committing = Committing()
    assert committing.commits.settled().is_done, "there is nothing to wait for"
    committing.commit({A0: 1}, is_retried=False)
    committing.look()
    committing.commit({A0: 2})
    settled = committing.commits.settled()
    committing.commit({A0: 3}, is_retried=False)
    committing.committed()
    assert not settled.is_done
    assert committing.committed(ErrorCode.NOT_COORDINATOR) == {A0: 3}
    assert not settled.is_done, "the second is tried again"
    committing.wait_for(OffsetCommitRequest)
    committing.committed(ErrorCode.ILLEGAL_GENERATION)
    assert settled.is_done


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from([A0, A1, B0]), st.just(0), min_size=1),
            st.booleans(),
            st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, None]),
            st.booleans(),
            st.integers(0, 2),
        ),
        max_size=20,
    )
)
def test_offsets_are_never_undone(
    steps: list[tuple[dict[TopicPartition, int], bool, ErrorCode | None, bool, int]],
) -> None:
    """Every commit is of later offsets than the one before, and so it is at the coordinator."""
    committing = Committing()
    stored: dict[TopicPartition, int] = {}
    wanted: list[tuple[dict[TopicPartition, int], Completion[None]]] = []

    def store(request: OffsetCommitRequest) -> None:
        for topic in request.topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition_index)
                assert stored.get(key, -1) <= each.committed_offset
                stored[key] = each.committed_offset

    for number, (partitions, is_retried, code, is_lost_late, pause_s) in enumerate(steps):
        offsets = dict.fromkeys(partitions, number)
        wanted.append((offsets, committing.commit(offsets, is_retried=is_retried)))
        committing.look()
        if committing.open:
            request, _ = committing.take(OffsetCommitRequest)
            if code is ErrorCode.NONE or (code is None and is_lost_late):
                store(request)
            if code is None:
                committing.fail(OffsetCommitRequest)
            else:
                committing.committed(code)
        committing.wait(pause_s)
    for _ in range(3):
        committing.wait(2)
        committing.look()
        if committing.open:
            store(committing.take(OffsetCommitRequest)[0])
            committing.committed()
    for offsets, completion in wanted:
        assert completion.is_done
        if completion.error is None:
            assert all(stored[each] >= offset for each, offset in offsets.items())


# -- what is committed -----------------------------------------------------------------------------


def fetch_answer(
    codes: Mapping[int, ErrorCode], *, code: ErrorCode = ErrorCode.NONE, by_id: bool = False
) -> OffsetFetchResponse:
    topic = OffsetFetchResponseTopics(
        name="" if by_id else "a",
        topic_id=ID_A if by_id else uuid.UUID(int=0),
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=number,
                error_code=each,
                committed_offset=number + 40,
                committed_leader_epoch=2,
                metadata="m",
            )
            for number, each in codes.items()
        ],
    )
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(topics=[topic], error_code=code)])


@pytest.mark.parametrize("by_id", [True, False])
def test_committed_offsets(by_id: bool) -> None:
    committing = Committing()
    if by_id:
        committing.learn_ids()
    completion = committing.commits.fetch([A0, A1], committing.now_s)
    request, ask = committing.take(OffsetFetchRequest)
    assert request.require_stable and ask.version_max == (None if by_id else 9)
    assert request.groups[0].topics is not None
    assert request.groups[0].topics[0].partition_indexes == [0, 1]
    answer = fetch_answer({0: ErrorCode.NONE, 1: ErrorCode.NONE}, by_id=by_id)
    answer.groups[0].topics[0].partitions[1].committed_offset = -1
    committing.answer(OffsetFetchRequest, answer)
    assert completion.result() == {A0: OffsetAndMetadata(40, "m", 2), A1: None}


def test_old_brokers_answer_otherwise() -> None:
    committing = Committing()
    completion = committing.commits.fetch([A0], committing.now_s)
    request, _ = committing.take(OffsetFetchRequest)
    assert request.group_id == "readers" and request.topics is not None
    assert request.topics[0].partition_indexes == [0]
    old = OffsetFetchResponsePartition(partition_index=0, committed_offset=8, metadata=None)
    committing.answer(
        OffsetFetchRequest,
        OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="a", partitions=[old])]),
    )
    assert completion.result() == {A0: OffsetAndMetadata(8)}


@pytest.mark.parametrize(
    "code", [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_offsets_of_open_transactions_are_waited_for(code: ErrorCode) -> None:
    committing = Committing()
    completion = committing.commits.fetch([A0, A1], committing.now_s)
    for _ in range(3):
        committing.wait_for(OffsetFetchRequest)
        committing.answer(OffsetFetchRequest, fetch_answer({0: ErrorCode.NONE, 1: code}))
        assert not completion.is_done
    committing.wait_for(OffsetFetchRequest)
    committing.answer(OffsetFetchRequest, fetch_answer({0: ErrorCode.NONE, 1: ErrorCode.NONE}))
    assert completion.result()[A1] == OffsetAndMetadata(41, "m", 2)


def test_a_coordinator_that_has_moved_is_looked_for() -> None:
    committing = Committing()
    completion = committing.commits.fetch([A0], committing.now_s)
    committing.answer(OffsetFetchRequest, fetch_answer({}, code=ErrorCode.NOT_COORDINATOR))
    assert committing.coordinators.get(COORDINATOR) is None and not completion.is_done
    committing.wait_for(OffsetFetchRequest)
    committing.fail(OffsetFetchRequest)
    committing.wait_for(OffsetFetchRequest)
    committing.answer(OffsetFetchRequest, fetch_answer({0: ErrorCode.NONE}))
    assert completion.is_done


def test_what_may_not_be_read_fails() -> None:
    committing = Committing()
    whole = committing.commits.fetch([A0], committing.now_s)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    committing.answer(OffsetFetchRequest, fetch_answer({}, code=code))
    assert isinstance(whole.error, KafkaError) and whole.error.code is code
    part = committing.commits.fetch([A0, A1], committing.now_s)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answer = fetch_answer({0: ErrorCode.UNSTABLE_OFFSET_COMMIT, 1: code})
    committing.answer(OffsetFetchRequest, answer)
    assert isinstance(part.error, KafkaError) and part.error.code is code
    assert "a-1" in str(part.error)


def test_nothing_is_asked_for_no_partitions() -> None:
    assert Committing().commits.fetch([], 0.0).result() == {}
