"""ConsumerGroupDescribe (key 69): groups of the consumer protocol, their members and assignments.

Versions served: 0 to 1, flexible from the start.

    v1   tells of each member which protocol it speaks

A group of the classic protocol is not found here: DescribeGroups shows those.
"""

from __future__ import annotations

import asyncio

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS
from headwater.broker.context import RequestContext
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
    described = await asyncio.gather(*(_describe(name, context) for name in request.group_ids))
    for group in described:
        if group.error_code:
            context.record_error(ErrorCode.from_wire(group.error_code))
        elif request.include_authorized_operations:
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


API = ApiHandler(ApiKey.CONSUMER_GROUP_DESCRIBE, handle)
