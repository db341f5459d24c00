"""ConsumerGroupHeartbeat (key 68): the one request of members of the consumer group protocol.

With it a member joins (epoch 0), tells what has changed of it and what it has, hears what it may
have, and leaves (epoch -1, or -2 for a static member that will be back).
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    # Java writes an address without a host name this way, and tools show it so.
    client_host = f"/{context.connection.peer[0]}"
    client = JoiningClient(context.client_id or "", client_host, context.api_version)
    try:
        if "consumer" not in context.broker.settings.texts("group.coordinator.rebalance.protocols"):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, "This broker does not speak the consumer protocol."
            )
        return await context.broker.groups.write(
            request.group_id,
            lambda shard, now_ms: shard.consumer.heartbeat(request, client, now_ms),
        )
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))


API = ApiHandler(CARDS[ApiKey.CONSUMER_GROUP_HEARTBEAT], handle)
