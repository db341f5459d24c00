"""Admin operations on delayed messages: list, show and count them, give them another time.

A message is named by its id, `orders-0@1234`, or by the id that its sender gave it (`SenderId`),
which may stand for several messages in several partitions. Only Headwater delays; on another
cluster every operation fails with one sentence.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin.delayed_pages import DelayedPages
from headwater.client.admin.delayed_requests import Change, DelayedRequests, Found, Question
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, require_all
from headwater.client.admin.topics import TopicOperations
from headwater.client.delay_times import DelayLike, MomentLike, due_ms_of, moment_ms_of
from headwater.client.given_items import given_names, given_number, given_topic
from headwater.client.kafka_errors import ResourceNotFoundError
from headwater.client.message_id import MessageLike, SenderId, sender_id_bytes
from headwater.wire.cluster_messages.describe_delayed import DescribedMessage

LISTED: Final = 100
_LONG_MAX: Final = 2**63 - 1
_CANCEL, _RESCHEDULE, _NOW = range(3)


class DelayedMessage(NamedTuple):
    """A message that waits for its time."""

    id: MessageId
    due_ms: int
    sent_ms: int
    #: From when on it is not delivered any more, if there is such a time.
    expires_ms: int | None
    #: The id that its sender gave it, if it did.
    sender_id: bytes | None
    key: bytes | None
    size_bytes: int


class DelayedListing(NamedTuple):
    """The messages that are due first, soonest first, and whether there are more."""

    messages: list[DelayedMessage]
    has_more: bool


class DelayedStats(NamedTuple):
    """What waits in a partition, and what its leader has counted since it started."""

    waiting: int
    waiting_bytes: int
    due_within_minute: int
    #: When the next message is due, if one waits.
    next_due_ms: int | None
    delivered: int
    cancelled: int
    expired: int
    #: Cancels and the like that named nothing that waits.
    unknown: int
    rolled_bytes: int
    index_bytes: int
    #: What DeleteRecords took; 0 from brokers that do not tell.
    deleted: int


class DelayedOperations(Operations):
    """See `AdminOperations`."""

    async def list_delayed(
        self,
        topic: str,
        *,
        partitions: Collection[int] | None = None,
        due_from: MomentLike = 0,
        due_to: MomentLike = _LONG_MAX,
        limit: int = LISTED,
    ) -> DelayedListing:
        """The first messages of a topic that are due from and to these times, both included.

        Brokers answer with a page at a time; what is delivered or changed meanwhile may be missing.
        """
        limit = given_number(limit, "The limit", lowest=1)
        from_ms, to_ms = moment_ms_of(due_from, "due_from"), moment_ms_of(due_to, "due_to")
        asked = await self._partitions(given_topic(topic), partitions)
        pages = {key: DelayedPages(from_ms, to_ms, limit) for key in asked}
        while questions := {
            key: question for key, each in pages.items() if (question := each.question())
        }:
            for key, found in require_all(await self._requests.describe(questions)).items():
                pages[key].add(found.messages, has_more=found.has_more)
        messages = sorted(
            (_message(key, each) for key, some in pages.items() for each in some.messages),
            key=lambda message: (message.due_ms, message.id),
        )
        has_more = len(messages) > limit or any(each.has_more for each in pages.values())
        return DelayedListing(messages[:limit], has_more)

    async def describe_delayed(
        self, messages: Iterable[MessageLike] | MessageLike
    ) -> Outcomes[MessageId | SenderId, list[DelayedMessage]]:
        """What waits under each name; `ResourceNotFoundError` where nothing does."""
        names = _given_messages(messages)
        places = await self._places(names)
        outcomes: Outcomes[MessageId | SenderId, list[DelayedMessage]] = {}
        # A request asks a partition one thing; whoever names many messages mostly names partitions.
        for name, partitions in places.items():
            question = Question(offset=_offset(name), sender_id=_sender_id(name))
            found = await self._requests.describe(dict.fromkeys(partitions, question))
            waiting: list[DelayedMessage] = []
            error: KafkaError | None = None
            for answer in found.values():
                if isinstance(answer, KafkaError):
                    error = error or answer
                else:
                    waiting += _messages(answer)
            outcomes[name] = error or waiting or _not_found(name)
        return outcomes

    async def cancel_delayed(
        self, messages: Iterable[MessageLike] | MessageLike, *, raise_errors: bool = True
    ) -> Outcomes[MessageId | SenderId, list[MessageId]]:
        """Have messages never be delivered; each outcome has those that a name stood for."""
        return await self._change(messages, _CANCEL, -1, raise_errors)

    async def reschedule_delayed(
        self,
        messages: Iterable[MessageLike] | MessageLike,
        *,
        delay: DelayLike | None = None,
        deliver_at: MomentLike | None = None,
        raise_errors: bool = True,
    ) -> Outcomes[MessageId | SenderId, list[MessageId]]:
        """Have messages delivered so much from now, or at that time."""
        due_ms = due_ms_of(delay, deliver_at, int(time.time() * 1000))
        return await self._change(messages, _RESCHEDULE, due_ms, raise_errors)

    async def deliver_delayed_now(
        self, messages: Iterable[MessageLike] | MessageLike, *, raise_errors: bool = True
    ) -> Outcomes[MessageId | SenderId, list[MessageId]]:
        """Have messages delivered at once."""
        return await self._change(messages, _NOW, -1, raise_errors)

    async def delayed_stats(
        self, topics: Iterable[str] | None = None
    ) -> Outcomes[TopicPartition, DelayedStats]:
        """What waits in the partitions of these topics, or of all."""
        if topics is None:
            listed = await TopicOperations(self.connection).list_topics()
            names = [topic.name for topic in listed if not topic.is_internal]
        else:
            names = given_names(topics)
        partitions = [each for name in names for each in await self._partitions(name, None)]
        found = await self._requests.describe(dict.fromkeys(partitions, Question()))
        return {
            key: answer if isinstance(answer, KafkaError) else _stats(answer)
            for key, answer in found.items()
        }

    # -- how -------------------------------------------------------------------------------------

    @property
    def _requests(self) -> DelayedRequests:
        return DelayedRequests(self.connection)

    async def _partitions(self, topic: str, chosen: Collection[int] | None) -> list[TopicPartition]:
        found = await self.connection.find_topic(topic)
        if chosen is not None:
            for number in chosen:
                found.partition(number)
        return [
            TopicPartition(topic, each.partition)
            for each in found.partitions
            if chosen is None or each.partition in chosen
        ]

    async def _places(
        self, names: list[MessageId | SenderId]
    ) -> dict[MessageId | SenderId, list[TopicPartition]]:
        """The partitions in which something of that name may wait."""
        return {
            name: await self._partitions(
                name.topic, None if name.partition is None else [name.partition]
            )
            for name in names
        }

    async def _change(
        self,
        messages: Iterable[MessageLike] | MessageLike,
        kind: int,
        due_ms: int,
        raise_errors: bool,
    ) -> Outcomes[MessageId | SenderId, list[MessageId]]:
        places = await self._places(_given_messages(messages))
        changes: dict[TopicPartition, list[tuple[MessageId | SenderId, Change]]] = {}
        for name, partitions in places.items():
            change = Change(kind, _offset(name), _sender_id(name), due_ms)
            for each in partitions:
                changes.setdefault(each, []).append((name, change))
        answered = await self._requests.alter(
            {key: [change for _, change in named] for key, named in changes.items()}
        )
        done: dict[MessageId | SenderId, list[MessageId]] = {name: [] for name in places}
        failed: dict[MessageId | SenderId, KafkaError] = {}
        for key, named in changes.items():
            answer = answered[key]
            for number, (name, _) in enumerate(named):
                result = answer if isinstance(answer, KafkaError) else answer[number]
                if not isinstance(result, KafkaError):
                    done[name] += [MessageId(*key, offset) for offset in result]
                elif result.code is not ErrorCode.RESOURCE_NOT_FOUND or len(places[name]) == 1:
                    failed.setdefault(name, result)
        # Of a sender's id it is enough that one partition knows it.
        outcomes: Outcomes[MessageId | SenderId, list[MessageId]] = {
            name: failed.get(name) or done[name] or _not_found(name) for name in places
        }
        return raised_or_returned(outcomes, raise_errors)


def _given_messages(given: Iterable[MessageLike] | MessageLike) -> list[MessageId | SenderId]:
    is_one = isinstance(given, MessageId | SenderId | str) or not isinstance(given, Iterable)
    names: list[MessageId | SenderId] = []
    for name in [given] if is_one else given:
        if isinstance(name, str):
            names.append(MessageId.parse(name))
        elif isinstance(name, SenderId):
            names.append(name._replace(sender_id=sender_id_bytes(name.sender_id)))
        elif isinstance(name, MessageId):
            names.append(name)
        else:
            raise TypeError(
                f"{name!r} does not name a message: give its id, as in 'orders-0@1234', or a "
                "SenderId."
            )
    return list(dict.fromkeys(names))


def _offset(name: MessageId | SenderId) -> int:
    return name.offset if isinstance(name, MessageId) else -1


def _sender_id(name: MessageId | SenderId) -> bytes:
    return b"" if isinstance(name, MessageId) else name.sender_id


def _not_found(name: MessageId | SenderId) -> KafkaError:
    return ResourceNotFoundError(
        f"No message waits as {name}: it was delivered, cancelled or never there."
    )


def _messages(found: Found) -> list[DelayedMessage]:
    return [_message(found.topic_partition, message) for message in found.messages]


def _message(partition: TopicPartition, message: DescribedMessage) -> DelayedMessage:
    return DelayedMessage(
        MessageId(*partition, message.offset),
        message.due_ms,
        message.sent_ms,
        None if message.expires_ms < 0 else message.expires_ms,
        message.sender_id or None,
        message.key,
        message.size_bytes,
    )


def _stats(found: Found) -> DelayedStats:
    counts = found.counts
    return DelayedStats(
        counts.waiting,
        counts.waiting_bytes,
        counts.due_within_minute,
        None if counts.next_due_ms < 0 else counts.next_due_ms,
        counts.delivered,
        counts.cancelled,
        counts.expired,
        counts.unknown,
        counts.rolled_bytes,
        counts.index_bytes,
        counts.deleted,
    )
