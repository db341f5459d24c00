"""OffsetDelete (key 47): forget committed offsets that no member of the group uses.

The group is answered for as a whole, or else each partition. A partition without a committed offset
is no error, one that does not exist is.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    topics = context.broker.image.topics
    response = OffsetDeleteResponse()
    partitions: list[TopicPartition] = []
    #: The answers that the coordinator gives, one for each partition.
    awaited: list[OffsetDeleteResponsePartition] = []
    for asked_topic in request.topics:
        topic = topics.get(asked_topic.name)
        partition_count = 0 if topic is None else len(topic.partitions)
        answers: list[OffsetDeleteResponsePartition] = []
        response.topics.append(OffsetDeleteResponseTopic(name=asked_topic.name, partitions=answers))
        for asked in asked_topic.partitions:
            answer = OffsetDeleteResponsePartition(partition_index=asked.partition_index)
            answers.append(answer)
            if 0 <= asked.partition_index < partition_count:
                partitions.append(TopicPartition(asked_topic.name, asked.partition_index))
                awaited.append(answer)
            else:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partitions:
        try:
            codes = await _delete(request.group_id, partitions, context)
        except KafkaError as error:
            return OffsetDeleteResponse(error_code=error.code)
        for answer, code in zip(awaited, codes, strict=True):
            answer.error_code = code
    return response


async def _delete(
    group_id: str, partitions: list[TopicPartition], context: RequestContext
) -> list[ErrorCode]:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Only a group with a name has offsets.")
    return await context.broker.groups.write(
        group_id, lambda shard, now_ms: shard.offsets.delete(group_id, partitions)
    )


API = ApiHandler(CARDS[ApiKey.OFFSET_DELETE], handle)
