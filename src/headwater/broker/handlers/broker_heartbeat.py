"""BrokerHeartbeat (key 63): a broker that wants to stop hands over what it leads.

Whether a broker is alive its session with the metadata store tells, so this is
asked for nothing but a controlled shutdown. `should_shut_down` says that all was moved that can be.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.registered_brokers import check_broker_epoch
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


async def handle(
    request: BrokerHeartbeatRequest, context: RequestContext
) -> BrokerHeartbeatResponse:
    try:
        context.check_speaks_for(request.broker_id)
        controller = context.controller
        check_broker_epoch(request.broker_id, request.broker_epoch, controller.image)
        if request.want_shut_down:
            await controller.shut_down_broker(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return BrokerHeartbeatResponse(error_code=error.code)
    return BrokerHeartbeatResponse(
        is_caught_up=True, is_fenced=False, should_shut_down=request.want_shut_down
    )


API = ApiHandler(CARDS[ApiKey.BROKER_HEARTBEAT], handle)
