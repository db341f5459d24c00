"""DescribeGroups (key 15): classic groups, their members, and who has which assignment.

Versions served: 0 to 6.

    v1   throttle time
    v3   which operations the client may do
    v4   group instance ids
    v5   flexible
    v6   a group that is not there is an error, GROUP_ID_NOT_FOUND, with a message

Earlier versions say of a group that is not there, or is not a classic one, that it is dead.
"""

from __future__ import annotations

import asyncio

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS
from headwater.broker.context import RequestContext
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    described = await asyncio.gather(*(_describe(name, context) for name in request.groups))
    for group in described:
        if group.error_code:
            context.record_error(ErrorCode.from_wire(group.error_code))
        elif request.include_authorized_operations:
            group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


async def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return await context.broker.groups.read(
            group_id, lambda shard, _: shard.classic.describe(group_id, context.api_version)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)


API = ApiHandler(ApiKey.DESCRIBE_GROUPS, handle)
