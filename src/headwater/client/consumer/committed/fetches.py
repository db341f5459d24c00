"""Asks a group's coordinator what the group has committed, until it can say.

An offset that an open transaction has written is unstable: whoever read the one before it would
read records again that the transaction counts as done. So that is asked for again until the
transaction has ended.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.errors import fetch_error
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.requests import (
    NAMES_VERSION_MAX,
    TopicIds,
    fetch_outcome,
    fetch_request,
)
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.client.machines.completion import Completion
from headwater.wire.messages.offset_fetch import OffsetFetchResponse

Committed = dict[TopicPartition, OffsetAndMetadata | None]


@dataclass(slots=True, eq=False)
class _Question:
    partitions: Sequence[TopicPartition]
    deadline_s: float
    due_s: float
    completion: Completion[Committed] = field(default_factory=Completion)
    attempt_count: int = 0
    #: A topic id that the coordinator does not know may be newer, or older, than what it knows.
    uses_names: bool = False


class OffsetFetches:
    def __init__(
        self,
        group_id: str,
        *,
        coordinator: CoordinatorOf,
        coordinators: CoordinatorCache,
        metadata: ClusterMetadata,
        policy: RetryPolicy,
        generator: random.Random,
        request_timeout_s: float,
        api_timeout_s: float,
    ) -> None:
        self._group_id = group_id
        self._coordinator = coordinator
        self._coordinators = coordinators
        self._metadata = metadata
        self._policy = policy
        self._generator = generator
        self._request_timeout_s = request_timeout_s
        self._api_timeout_s = api_timeout_s
        self._due: list[_Question] = []

    def fetch(self, partitions: Collection[TopicPartition], now_s: float) -> Completion[Committed]:
        question = _Question(sorted(set(partitions)), now_s + self._api_timeout_s, now_s)
        if question.partitions:
            self._due.append(question)
        else:
            question.completion.succeed({})
        return question.completion

    def asks(self, now_s: float) -> Sequence[Ask]:
        due = [each for each in self._due if each.due_s <= now_s]
        self._due = [each for each in self._due if each.due_s > now_s]
        return [self._ask(each) for each in due]

    def wake_at_s(self) -> float | None:
        return min((each.due_s for each in self._due), default=None)

    def _ask(self, question: _Question) -> Ask:
        topics = TopicIds.of((name for name, _ in question.partitions), self._metadata)

        def answered(answer: OffsetFetchResponse, now_s: float) -> None:
            self._answered(question, answer, topics, now_s)

        def failed(error: KafkaError, now_s: float) -> None:
            self._coordinators.forget(self._coordinator)
            self._refused(question, error, now_s)

        return Ask(
            fetch_request(self._group_id, question.partitions, topics),
            self._coordinator,
            answered,
            failed,
            timeout_s=self._request_timeout_s,
            version_max=NAMES_VERSION_MAX if question.uses_names else topics.version_max,
        )

    def _answered(
        self, question: _Question, answer: OffsetFetchResponse, topics: TopicIds, now_s: float
    ) -> None:
        error_code, errors, offsets = fetch_outcome(answer, topics)
        self._coordinators.note_error(self._coordinator, error_code)
        question.uses_names |= ErrorCode.UNKNOWN_TOPIC_ID in errors.values()
        if error_code is not ErrorCode.NONE:
            self._refused(question, fetch_error(error_code, self._group_id), now_s)
        elif errors:
            # What no other attempt will mend goes first.
            worst = min(errors.items(), key=lambda each: (each[1].retriable, each[0]))
            self._refused(question, fetch_error(worst[1], self._group_id, str(worst[0])), now_s)
        else:
            # Partitions that the answer leaves out have nothing committed.
            question.completion.succeed(
                {each: offsets.get(each) for each in sorted(question.partitions)}
            )

    def _refused(self, question: _Question, error: KafkaError, now_s: float) -> None:
        question.attempt_count += 1
        pause_s = self._policy.pause_s(question.attempt_count, self._generator)
        if error.retriable and now_s + pause_s < question.deadline_s:
            question.due_s = now_s + pause_s
            self._due.append(question)
        else:
            question.completion.fail(error)
