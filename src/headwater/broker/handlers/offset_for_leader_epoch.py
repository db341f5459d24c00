"""OffsetForLeaderEpoch (key 23): where the records of a leader's term end.

A consumer or follower that has read records of an epoch asks whether its position still exists
after an election: if the epoch ended in front of it, the log was truncated under it.
"""

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    results = [OffsetForLeaderTopicResult(topic=topic.topic) for topic in request.topics]
    wanted = (
        (result, asked)
        for topic, result in zip(request.topics, results, strict=True)
        for asked in topic.partitions
    )
    async for result, asked in in_turns(wanted):
        result.partitions.append(_find(result.topic, asked, context))
    return OffsetForLeaderEpochResponse(topics=results)


def _find(topic: str, asked: OffsetForLeaderPartition, context: RequestContext) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.get(topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        epoch, end_offset = partition.end_offset_for(asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


API = ApiHandler(CARDS[ApiKey.OFFSET_FOR_LEADER_EPOCH], handle)
