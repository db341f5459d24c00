"""DescribeDelayed and AlterDelayed, put to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError, RequestTimedOutError
from headwater.base.ids import TopicPartition
from headwater.client.admin.leader_requests import ask_leaders
from headwater.client.admin.outcomes import Operations, Outcomes, not_answered
from headwater.client.errors import refusal
from headwater.client.kafka_errors import UnsupportedVersionError
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.cluster_messages.alter_delayed import (
    AlterDelayedChange,
    AlterDelayedPartition,
    AlterDelayedRequest,
    AlterDelayedResponse,
    AlterDelayedTopic,
    AlteredDelayed,
)
from headwater.wire.cluster_messages.describe_delayed import (
    DescribedCounts,
    DescribeDelayedPartition,
    DescribeDelayedRequest,
    DescribeDelayedResponse,
    DescribeDelayedTopic,
    DescribedMessage,
)

#: What a broker lists in one answer, and how many changes of a partition it takes at once.
_LISTED_MAX: Final = 10_000
_CHANGES_MAX: Final = 1000
_BY_SENDER_ID_MAX: Final = 20


class Question(NamedTuple):
    """What a partition is asked: for a message, for those of a sender's id or of a time."""

    offset: int = -1
    sender_id: bytes = b""
    from_ms: int = 0
    to_ms: int = 2**63 - 1
    limit: int = 0
    skip: int = 0


class Found(NamedTuple):
    """A partition's answer."""

    topic_partition: TopicPartition
    messages: list[DescribedMessage]
    has_more: bool
    counts: DescribedCounts


class Change(NamedTuple):
    kind: int
    offset: int
    sender_id: bytes
    due_ms: int


#: The offsets of the messages that a change concerned, or why there are none.
Altered = list[int] | KafkaError


class DelayedRequests(Operations):
    async def describe(
        self, questions: Mapping[TopicPartition, Question]
    ) -> Outcomes[TopicPartition, Found]:
        """What waits in partitions."""
        largest = max((each.limit for each in questions.values()), default=0)
        # So many that an answer has room for all that is asked for.
        at_once = max(1, _LISTED_MAX // max(1, largest))

        async def ask_leader(
            leader_id: int, led: list[TopicPartition]
        ) -> Outcomes[TopicPartition, Found]:
            outcomes: Outcomes[TopicPartition, Found] = {}
            ordered = sorted(led)
            for begin in range(0, len(ordered), at_once):
                some = ordered[begin : begin + at_once]
                outcomes.update(await self._describe(leader_id, some, questions))
            return outcomes

        return await ask_leaders(
            self.connection, list(questions), ask_leader, "Looking up delayed messages"
        )

    async def _describe(
        self,
        leader_id: int,
        partitions: Sequence[TopicPartition],
        questions: Mapping[TopicPartition, Question],
    ) -> Outcomes[TopicPartition, Found]:
        request = DescribeDelayedRequest(
            topics=[
                DescribeDelayedTopic(
                    name=topic,
                    partitions=[
                        DescribeDelayedPartition(
                            partition_index=tp.partition, **questions[tp]._asdict()
                        )
                        for tp in led
                    ],
                )
                for topic, led in groupby(partitions, key=lambda tp: tp.topic)
            ]
        )
        try:
            response = await self.connection.ask(request, DescribeDelayedResponse, leader_id)
        except UnsupportedVersionError:
            raise _no_delays() from None
        outcomes: Outcomes[TopicPartition, Found] = {}
        for topic in response.topics:
            for found in topic.partitions:
                key = TopicPartition(topic.name, found.partition_index)
                outcomes[key] = (
                    refusal(found.error_code, found.error_message, str(key))
                    if found.error_code
                    else Found(key, found.messages, found.has_more, found.counts)
                )
        return outcomes

    async def alter(
        self, changes: Mapping[TopicPartition, Sequence[Change]]
    ) -> Outcomes[TopicPartition, list[Altered]]:
        """Make changes in partitions, each with as many results as changes."""
        attempts = {key: _Attempts() for key in changes}

        async def ask_leader(
            leader_id: int, led: list[TopicPartition]
        ) -> Outcomes[TopicPartition, list[Altered]]:
            outcomes: Outcomes[TopicPartition, list[Altered]] = {}
            for key in led:
                try:
                    await self._alter(leader_id, key, changes[key], attempts[key])
                    outcomes[key] = attempts[key].results
                except (PeerUnavailableError, RequestTimedOutError) as error:
                    attempts[key].is_in_doubt = True
                    outcomes[key] = error
                except KafkaError as error:
                    outcomes[key] = error
            return outcomes

        return await ask_leaders(
            self.connection, list(changes), ask_leader, "Changing delayed messages"
        )

    async def _alter(
        self,
        leader_id: int,
        key: TopicPartition,
        changes: Sequence[Change],
        attempts: _Attempts,
    ) -> None:
        """Make the changes that no attempt was told the results of."""
        while len(attempts.results) < len(changes):
            begin = len(attempts.results)
            some = _at_once(changes, begin)
            partition = AlterDelayedPartition(
                partition_index=key.partition,
                changes=[AlterDelayedChange(**change._asdict()) for change in some],
            )
            request = AlterDelayedRequest(
                timeout_ms=int(self.connection.request_timeout_s * 1000),
                topics=[AlterDelayedTopic(name=key.topic, partitions=[partition])],
            )
            try:
                response = await self.connection.ask(request, AlterDelayedResponse, leader_id)
            except UnsupportedVersionError:
                raise _no_delays() from None
            answers = [answer for topic in response.topics for answer in topic.partitions]
            if len(answers) == 1 and answers[0].error_code:
                raise refusal(answers[0].error_code, answers[0].error_message, str(key))
            if len(answers) != 1 or len(answers[0].results) != len(some):
                raise not_answered(key)
            attempts.results += [
                _altered(result, key, attempts.is_in_doubt) for result in answers[0].results
            ]
            attempts.is_in_doubt = False


def _at_once(changes: Sequence[Change], begin: int) -> list[Change]:
    """As many of the changes that come next as a broker takes in one request."""
    some: list[Change] = []
    by_sender_id = 0
    for change in changes[begin : begin + _CHANGES_MAX]:
        by_sender_id += bool(change.sender_id)
        if by_sender_id > _BY_SENDER_ID_MAX:
            break
        some.append(change)
    return some


class _Attempts:
    """What is known of a partition's changes by now."""

    def __init__(self) -> None:
        self.results: list[Altered] = []
        #: Whether the answer to the changes that come next was lost once.
        self.is_in_doubt = False


def _altered(result: AlteredDelayed, key: TopicPartition, is_in_doubt: bool) -> Altered:
    if not result.error_code:
        return result.offsets
    message = result.error_message
    if is_in_doubt and result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        message = f"{message} An earlier attempt, whose answer was lost, may have been it."
    return refusal(result.error_code, message, str(key))


def _no_delays() -> KafkaError:
    return UnsupportedVersionError(
        "This cluster has no delayed messages to look after: only brokers of Headwater have."
    )
