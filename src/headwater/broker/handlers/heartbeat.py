"""Heartbeat (key 12): a member of a classic group is alive, and hears whether to join again."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.errors import check_group_id
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    def take(shard: GroupShard, now_ms: int, reply: Reply[HeartbeatResponse]) -> Outcome:
        # It changes nothing that is written, so there is nothing to wait for.
        shard.classic.heartbeat(request, now_ms)
        reply.send(HeartbeatResponse())
        return Outcome()

    try:
        check_group_id(request.group_id)
        return await context.broker.groups.ask(request.group_id, take)
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Nobody knows yet, and loading starts sessions anew: so the member need not worry.
            return HeartbeatResponse()
        return HeartbeatResponse(error_code=error.code)


API = ApiHandler(CARDS[ApiKey.HEARTBEAT], handle)
