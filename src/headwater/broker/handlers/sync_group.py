"""SyncGroup (key 14): a member gets its assignment; the leader brings everybody's.

Versions served: 0 to 5.

    v1   throttle time
    v3   group instance ids
    v4   flexible
    v5   protocol type and name, which have to match the group's

The answer comes when the leader has handed in the assignments and they are safe.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.errors import check_group_id
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    try:
        check_group_id(request.group_id)
        return await context.broker.groups.ask(
            request.group_id,
            lambda shard, now_ms, reply: shard.classic.sync(request, now_ms, reply),
        )
    except KafkaError as error:
        context.record_error(error.code)
        return SyncGroupResponse(error_code=error.code)


API = ApiHandler(ApiKey.SYNC_GROUP, handle)
