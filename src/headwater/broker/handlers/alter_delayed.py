"""AlterDelayed (private key 10004): cancel messages that wait, or have them come at another time.

Changes are records in the partition's log, and are told to be done when they are as safe as an
acks=all produce would be. That holds for "there is no such message" too: what says so may be a
delivery or a cancellation that is not safe yet. What is not safe when the request's time is over
gets REQUEST_TIMED_OUT, although it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import shortened
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.broker.requests.fair_turns import ONE_PER_TURN, in_turns
from headwater.delay.waiting import Changed, ChangeKind, DelayChange, MessageName
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.waiting.delayed_produce import (
    AwaitedAppend,
    await_append,
    when_settled,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.alter_delayed import (
    AlterDelayedChange,
    AlterDelayedPartition,
    AlterDelayedRequest,
    AlterDelayedResponse,
    AlteredDelayed,
    AlteredDelayedPartition,
    AlteredDelayedTopic,
)
from headwater.wire.delayed.delayed_batch import DUE_MS_MAX

#: Of one partition in one request, since they are written in one go.
CHANGES_MAX: Final = 1000
#: Of these, those that name messages by a sender's id: for each a thousand records may be read.
BY_SENDER_ID_MAX: Final = 20


async def handle(request: AlterDelayedRequest, context: RequestContext) -> AlterDelayedResponse:
    changes = _Changes(context)
    answers = [AlteredDelayedTopic(name=topic.name) for topic in request.topics]
    wanted = (
        (answer, asked)
        for answer, topic in zip(answers, request.topics, strict=True)
        for asked in topic.partitions
    )
    async for answer, asked in in_turns(wanted, ONE_PER_TURN):
        answer.partitions.append(changes.write(answer.name, asked))
    await changes.wait(request.timeout_ms)
    return AlterDelayedResponse(topics=answers)


class _Changes:
    """The changes of one request; what becomes of a partition's goes into its answer."""

    def __init__(self, context: RequestContext) -> None:
        self._broker = context.broker
        self._seen: set[tuple[str, int]] = set()
        self._appends: list[tuple[AwaitedAppend, AlteredDelayedPartition]] = []

    def write(self, topic: str, asked: AlterDelayedPartition) -> AlteredDelayedPartition:
        """Write one partition's changes; whether they are safe is told later."""
        answer = AlteredDelayedPartition(partition_index=asked.partition_index)
        try:
            if (topic, asked.partition_index) in self._seen:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "The request names this partition twice."
                )
            self._seen.add((topic, asked.partition_index))
            _check_count(asked.changes)
            partition = self._broker.partitions.get(topic, asked.partition_index)
            delays = self._broker.delays.of(partition)
            now_ms = self._broker.clock.wall_ms()
            latest_ms = min(now_ms + partition.log.config.delay.max_ms, DUE_MS_MAX)
            read = [_read_change(change, latest_ms) for change in asked.changes]
            valid = [change for change in read if isinstance(change, DelayChange)]
            outcomes: list[Changed] = []
            if valid:
                outcomes = delays.change(valid, acks=ACKS_ALL, now_ms=now_ms)
                end_offset = max(outcome.end_offset for outcome in outcomes)
                self._appends.append((await_append(partition, end_offset), answer))
        except KafkaError as error:
            _refuse(answer, error)
            return answer
        changed = iter(outcomes)
        answer.results = [
            _result(next(changed), change, f"{topic}-{asked.partition_index}")
            if isinstance(change, DelayChange)
            else AlteredDelayed(error_code=change.code, error_message=str(change))
            for change in read
        ]
        return answer

    async def wait(self, timeout_ms: int) -> None:
        """Return when all that was written is safe, or is known not to be."""
        if not self._appends:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def respond() -> None:
            if not done.done():
                done.set_result(None)

        appends = [append for append, _ in self._appends]
        when_settled(self._broker.parked.produce, appends, timeout_ms, respond)
        await done
        for append, answer in self._appends:
            if append.error is not None:
                _refuse(answer, append.error)


def _check_count(changes: list[AlterDelayedChange]) -> None:
    if len(changes) > CHANGES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(changes)} changes for one partition are too many: send at most {CHANGES_MAX} "
            "at once.",
        )
    by_sender_id = sum(1 for change in changes if change.sender_id)
    if by_sender_id > BY_SENDER_ID_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{by_sender_id} changes by a sender's id for one partition are too many: send at "
            f"most {BY_SENDER_ID_MAX} at once.",
        )


def _read_change(change: AlterDelayedChange, latest_ms: int) -> DelayChange | KafkaError:
    try:
        kind = ChangeKind(change.kind)
    except ValueError:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"There is no change of kind {change.kind}.")
    if (change.offset >= 0) == bool(change.sender_id):
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A change names messages by an offset or by a sender's id: by one of the two.",
        )
    if kind is ChangeKind.RESCHEDULE and change.due_ms < 0:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A message cannot be due at {change.due_ms}: it must be milliseconds since 1970.",
        )
    if kind is ChangeKind.RESCHEDULE and change.due_ms > latest_ms:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A message cannot be due at {change.due_ms}: delay.max.ms allows {latest_ms} now.",
        )
    return DelayChange(kind, MessageName(change.offset, change.sender_id), change.due_ms)


def _result(changed: Changed, change: DelayChange, place: str) -> AlteredDelayed:
    if changed.offsets:
        return AlteredDelayed(offsets=list(changed.offsets))
    offset, sender_id = change.name
    what = f"as {place}@{offset}" if offset >= 0 else f"in {place} under the sender's id"
    if offset < 0:
        what += f" {shortened(sender_id.decode(errors='replace'))!r}"
    return AlteredDelayed(
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"No message waits {what}: it was delivered, cancelled or never there.",
    )


def _refuse(answer: AlteredDelayedPartition, error: KafkaError) -> None:
    answer.error_code, answer.error_message, answer.results = error.code, str(error), []


_VERBS: Final = {
    ChangeKind.CANCEL: "cancelled",
    ChangeKind.RESCHEDULE: "rescheduled",
    ChangeKind.NOW: "delivered early",
}


def _deeds(request: AlterDelayedRequest, response: AlterDelayedResponse) -> Iterator[str]:
    done: dict[ChangeKind, list[str]] = {kind: [] for kind in ChangeKind}
    asked = (partition for topic in request.topics for partition in topic.partitions)
    answered = (
        (topic.name, partition) for topic in response.topics for partition in topic.partitions
    )
    for wanted, (name, partition) in zip(asked, answered, strict=True):
        if not partition.error_code:
            for change, result in zip(wanted.changes, partition.results, strict=True):
                if not result.error_code:
                    done[ChangeKind(change.kind)] += [
                        f"{name}-{partition.partition_index}@{offset}" for offset in result.offsets
                    ]
    for kind, names in done.items():
        yield deed(_VERBS[kind], "message", names)


API = ApiHandler(CARDS[ApiKey.ALTER_DELAYED], handle, deeds=_deeds)
