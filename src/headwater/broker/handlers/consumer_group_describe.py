"""ConsumerGroupDescribe (key 69): groups of the consumer protocol, their members and assignments.

A group of the classic protocol is not found here: DescribeGroups shows those.
"""

from __future__ import annotations

import asyncio

from headwater.base.errors import KafkaError
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.errors import check_group_id
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    # Who names a group twice is told once: the answer may be a thousand times the question.
    names = dict.fromkeys(request.group_ids)
    described = await asyncio.gather(*(_describe(name, context) for name in names))
    for group in described:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=described)


async def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        check_group_id(group_id)
        return await context.broker.groups.read(
            group_id, lambda shard, _: shard.consumer.describe(group_id)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))


API = ApiHandler(CARDS[ApiKey.CONSUMER_GROUP_DESCRIBE], handle)
