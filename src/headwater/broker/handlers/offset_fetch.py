"""OffsetFetch (key 9): the offsets that groups have committed.

A partition, or a group, of which nothing is known has the offset -1 and no error. A broker that is
cut off from the metadata store may have been replaced, and tells no stable offsets until it knows.

All clients ask again after COORDINATOR_LOAD_IN_PROGRESS. After NOT_COORDINATOR librdkafka looks for
the coordinator, but never asks it: the partitions are not read until they are assigned anew. So
that is said only where a client has no business to be: what will pass, and what a member hears of
with its next heartbeat, is a coordinator that is being loaded.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.image_waits import wait_for_image
from headwater.coordinator.group.offsets.fetch import FetchedOffset, WantedOffset
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headwater.wire.schema import ZERO_UUID

_GROUP_ERRORS_SINCE = 2
_BATCHED_SINCE = 8
_TOPIC_IDS_SINCE = 10


class _Topic(NamedTuple):
    """The answers for one topic, by name, id, or both."""

    name: str
    topic_id: uuid.UUID
    offsets: list[FetchedOffset]


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.api_version >= _BATCHED_SINCE:
        # Who names a group twice is told once: the answer may be a thousand times the question.
        asked = {group.group_id: group for group in request.groups}
        groups = await asyncio.gather(
            *(_batched(group, request.require_stable, context) for group in asked.values())
        )
        return OffsetFetchResponse(groups=list(groups))
    return await _single(request, context)


async def _batched(
    asked: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup:
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    try:
        topics = await _fetch(asked, require_stable, context)
    except KafkaError as error:
        response.error_code = _refusal(error, asked.group_id, context)
        return response
    response.topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=fetched.topic_partition.partition,
                    committed_offset=fetched.offset,
                    committed_leader_epoch=fetched.leader_epoch,
                    metadata=fetched.metadata,
                    error_code=fetched.error_code,
                )
                for fetched in topic.offsets
            ],
        )
        for topic in topics
    ]
    return response


async def _single(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    if request.topics is not None:
        asked.topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    response = OffsetFetchResponse()
    try:
        topics = await _fetch(asked, request.require_stable, context)
    except KafkaError as error:
        code = _refusal(error, asked.group_id, context)
        if context.api_version >= _GROUP_ERRORS_SINCE:
            response.error_code = code
            return response
        topics = [_failed(topic, code) for topic in asked.topics or ()]
    response.topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=fetched.topic_partition.partition,
                    committed_offset=fetched.offset,
                    committed_leader_epoch=fetched.leader_epoch,
                    metadata=fetched.metadata,
                    error_code=fetched.error_code,
                )
                for fetched in topic.offsets
            ],
        )
        for topic in topics
    ]
    return response


async def _fetch(
    asked: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> list[_Topic]:
    if asked.topics is None:
        return _by_topic(await _ask(asked, None, require_stable, context), context)
    topics = _named_once(asked.topics)
    names = [_name(topic, context) for topic in topics]
    wanted = [
        WantedOffset(TopicPartition(name, number), topic.topic_id)
        for topic, name in zip(topics, names, strict=True)
        if name is not None
        for number in topic.partition_indexes
    ]
    fetched = iter(await _ask(asked, wanted, require_stable, context))
    return [
        _failed(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        if name is None
        else _Topic(topic.name, topic.topic_id, [next(fetched) for _ in topic.partition_indexes])
        for topic, name in zip(topics, names, strict=True)
    ]


def _named_once(topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
    """The same without repetitions: four bytes of them ask for metadata of kilobytes."""
    numbers: dict[tuple[str, uuid.UUID], dict[int, None]] = {}
    for topic in topics:
        known = numbers.setdefault((topic.name, topic.topic_id), {})
        known.update(dict.fromkeys(topic.partition_indexes))
    return [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(known))
        for (name, topic_id), known in numbers.items()
    ]


async def _ask(
    asked: OffsetFetchRequestGroup,
    wanted: list[WantedOffset] | None,
    require_stable: bool,
    context: RequestContext,
) -> list[FetchedOffset]:
    await _wait_to_coordinate(asked.group_id, context)
    fetched = await context.broker.groups.read(
        asked.group_id,
        lambda shard, now_ms: shard.offsets.fetch(
            asked.group_id,
            wanted,
            require_stable=require_stable,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
        ),
    )
    if require_stable and not context.broker.member.is_up_to_date:
        # Whoever reads what is committed must not begin again at what was committed once. Asked
        # after the reading: time may have passed in it.
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return fetched


async def _wait_to_coordinate(group_id: str, context: RequestContext) -> None:
    """Wait a moment for the news that this broker coordinates the group, which others have heard.

    A client that another broker sent here comes too early then, and not to the wrong place.
    """
    broker = context.broker
    if broker.groups.topic in broker.image.topics:
        await wait_for_image(broker, lambda _: broker.groups.is_asked_in_good_faith(group_id))


def _name(topic: OffsetFetchRequestTopics, context: RequestContext) -> str | None:
    """The topic's name; None if there is none with its id."""
    if context.api_version >= _TOPIC_IDS_SINCE:
        return context.broker.image.topic_names.get(topic.topic_id)
    return topic.name


def _by_topic(fetched: list[FetchedOffset], context: RequestContext) -> list[_Topic]:
    """All offsets of a group; a client that goes by ids hears of topics that exist."""
    image = context.broker.image
    found: dict[str, _Topic] = {}
    for offset in fetched:
        name = offset.topic_partition.topic
        if name not in found:
            topic = image.topics.get(name)
            found[name] = _Topic(name, ZERO_UUID if topic is None else topic.topic_id, [])
        found[name].offsets.append(offset)
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    return [topic for topic in found.values() if topic.topic_id != ZERO_UUID or not by_id]


def _failed(topic: OffsetFetchRequestTopics, code: ErrorCode) -> _Topic:
    return _Topic(
        topic.name,
        topic.topic_id,
        [
            FetchedOffset(TopicPartition(topic.name, number), error_code=code)
            for number in topic.partition_indexes
        ],
    )


def _refusal(error: KafkaError, group_id: str, context: RequestContext) -> ErrorCode:
    code = error.code
    if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        # Consumers do not expect the latter here and would give up.
        if context.broker.groups.is_asked_in_good_faith(group_id):
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        else:
            code = ErrorCode.NOT_COORDINATOR
    return code


API = ApiHandler(CARDS[ApiKey.OFFSET_FETCH], handle)
