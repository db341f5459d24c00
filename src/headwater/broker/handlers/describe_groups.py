"""DescribeGroups (key 15): classic groups, their members, and who has which assignment.

Versions before 6 say of a group that is not there, or is not a classic one, that it is dead.
"""

from __future__ import annotations

import asyncio

from headwater.base.errors import KafkaError
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    # Who names a group twice is told once: the answer may be a thousand times the question.
    names = dict.fromkeys(request.groups)
    described = await asyncio.gather(*(_describe(name, context) for name in names))
    for group in described:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


async def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return await context.broker.groups.read(
            group_id, lambda shard, _: shard.classic.describe(group_id, context.api_version)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)


API = ApiHandler(CARDS[ApiKey.DESCRIBE_GROUPS], handle)
