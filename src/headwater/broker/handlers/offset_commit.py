"""OffsetCommit (key 8): a consumer, or somebody on behalf of a group, stores its offsets.

Partitions that do not exist are answered here; the coordinator decides about the others together.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.coordinator.group.offsets.commit import Committer, NewOffset
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS_SINCE = 10


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    image = context.broker.image
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    response = OffsetCommitResponse()
    offsets: list[NewOffset] = []
    #: The answers that the coordinator gives, one for each offset.
    awaited: list[OffsetCommitResponsePartition] = []
    for asked_topic in request.topics:
        topic = _find(asked_topic, image, by_id)
        answers: list[OffsetCommitResponsePartition] = []
        response.topics.append(
            OffsetCommitResponseTopic(
                name=asked_topic.name, topic_id=asked_topic.topic_id, partitions=answers
            )
        )
        for asked in asked_topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=asked.partition_index)
            answers.append(answer)
            if topic is None:
                answer.error_code = (
                    ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            elif not 0 <= asked.partition_index < len(topic.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets.append(_new_offset(topic, asked_topic, asked))
                awaited.append(answer)
    if offsets:
        codes = await _commit(request, offsets, context)
        for answer, code in zip(awaited, codes, strict=True):
            answer.error_code = code
    return response


async def _commit(
    request: OffsetCommitRequest, offsets: list[NewOffset], context: RequestContext
) -> list[ErrorCode]:
    committer = Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    try:
        return await context.broker.groups.write(
            request.group_id,
            lambda shard, now_ms: shard.offsets.commit(
                request.group_id,
                committer,
                offsets,
                now_ms,
                api_version=context.api_version,
                retention_ms=request.retention_time_ms,
            ),
        )
    except KafkaError as error:
        return [error.code] * len(offsets)


def _find(topic: OffsetCommitRequestTopic, image: ClusterImage, by_id: bool) -> TopicImage | None:
    return image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.name)


def _new_offset(
    topic: TopicImage, asked_topic: OffsetCommitRequestTopic, asked: OffsetCommitRequestPartition
) -> NewOffset:
    return NewOffset(
        TopicPartition(topic.name, asked.partition_index),
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata,
        asked_topic.topic_id,
    )


API = ApiHandler(CARDS[ApiKey.OFFSET_COMMIT], handle)
