"""DescribeDelayed (private key 10003): which messages wait in partitions, and how many.

The leader of a partition answers. What one answer lists is bounded, by number and by the bytes of
keys and ids; `has_more` says where something was left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import ONE_PER_TURN, in_turns
from headwater.delay.waiting import MessageName, WaitingMessage
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.describe_delayed import (
    DescribedCounts,
    DescribedDelayedPartition,
    DescribedDelayedTopic,
    DescribeDelayedPartition,
    DescribeDelayedRequest,
    DescribeDelayedResponse,
    DescribedMessage,
)

#: Of one partition, since they are read in one go.
MESSAGES_MAX: Final = 1000
#: Of one partition in one request, since each may have a thousand records read.
QUESTIONS_MAX: Final = 20
#: Of those that are due in one millisecond, so many can be paged through.
SKIP_MAX: Final = 100_000
#: Of one answer.
LISTED_MAX: Final = 10_000
LISTED_BYTES_MAX: Final = 4 << 20


async def handle(
    request: DescribeDelayedRequest, context: RequestContext
) -> DescribeDelayedResponse:
    described = _Described(context)
    answers = [DescribedDelayedTopic(name=topic.name) for topic in request.topics]
    wanted = (
        (answer, asked)
        for answer, topic in zip(answers, request.topics, strict=True)
        for asked in topic.partitions
    )
    async for answer, asked in in_turns(wanted, ONE_PER_TURN):
        answer.partitions.append(await described.partition(answer.name, asked))
    return DescribeDelayedResponse(topics=answers)


class _Described:
    """One answer, and how much more may be in it."""

    def __init__(self, context: RequestContext) -> None:
        self._broker = context.broker
        self._questions: Counter[tuple[str, int]] = Counter()
        self._count_left = LISTED_MAX
        self._bytes_left = LISTED_BYTES_MAX

    async def partition(
        self, topic: str, asked: DescribeDelayedPartition
    ) -> DescribedDelayedPartition:
        answer = DescribedDelayedPartition(partition_index=asked.partition_index)
        try:
            _check(asked)
            self._count_question(topic, asked.partition_index)
            partition = self._broker.partitions.get(topic, asked.partition_index)
            delays = self._broker.delays.of(partition)
            # One that is beyond the limit says that there are more.
            limit = min(asked.limit, MESSAGES_MAX, self._count_left)
            if asked.offset >= 0 or asked.sender_id:
                limit = min(MESSAGES_MAX, self._count_left)
                found = delays.find(MessageName(asked.offset, asked.sender_id))
            elif limit > 0:
                found = await delays.between(asked.from_ms, asked.to_ms, limit + 1, asked.skip)
            else:
                found = []
            counts = delays.counts(self._broker.clock.wall_ms())
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, str(error)
            return answer
        answer.messages = self._listed(found[:limit])
        answer.has_more = len(found) > len(answer.messages)
        if asked.limit > 0 and limit <= 0:
            # Nobody has looked.
            answer.has_more = counts.waiting > 0
        answer.counts = DescribedCounts(**counts._asdict())
        return answer

    def _count_question(self, topic: str, partition: int) -> None:
        self._questions[topic, partition] += 1
        if self._questions[topic, partition] > QUESTIONS_MAX:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"One request can put {QUESTIONS_MAX} questions about a partition, and no more.",
            )

    def _listed(self, found: list[WaitingMessage]) -> list[DescribedMessage]:
        listed = []
        for message in found:
            self._bytes_left -= len(message.sender_id) + len(message.key or b"")
            if self._bytes_left < 0:
                self._count_left = 0
                break
            self._count_left -= 1
            listed.append(DescribedMessage(**message._asdict()))
        return listed


def _check(asked: DescribeDelayedPartition) -> None:
    if asked.offset >= 0 and asked.sender_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A message is named by its offset or by its sender's id, not by both.",
        )
    if not 0 <= asked.skip <= SKIP_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A list cannot leave out {asked.skip} messages: {SKIP_MAX} at most, and 0 at least.",
        )
    if asked.limit < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The limit cannot be {asked.limit}: it must be 0 or more."
        )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_DELAYED], handle)
