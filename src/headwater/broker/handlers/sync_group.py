"""SyncGroup (key 14): a member gets its assignment; the leader brings everybody's.

The answer comes when the leader has handed in the assignments and they are safe.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
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
        return SyncGroupResponse(error_code=error.code)


API = ApiHandler(CARDS[ApiKey.SYNC_GROUP], handle)
