"""UnregisterBroker (key 64): forget a broker that was stopped for good.

A broker is registered while it lives, so nothing of it is in the way once it is gone. What the
cluster still keeps about it goes: its settings, and the mark of a return that was not worked off.
BROKER_ID_NOT_REGISTERED if there is nothing. Replicas that it was to have stay named until they
are moved. Brokers other than the controller forward the request.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.cluster.brokers.unregistration import config_resource
from headwater.cluster.image.image import ClusterImage
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(
    request: UnregisterBrokerRequest, context: RequestContext
) -> UnregisterBrokerResponse:
    try:
        await context.controller.unregister_broker(request.broker_id)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
    return UnregisterBrokerResponse(error_message=None)


def _is_seen(
    request: UnregisterBrokerRequest, response: UnregisterBrokerResponse, image: ClusterImage
) -> bool:
    return bool(response.error_code) or config_resource(request.broker_id) not in image.configs


def _deeds(request: UnregisterBrokerRequest, response: UnregisterBrokerResponse) -> Iterator[str]:
    if not response.error_code:
        yield deed("unregistered", "broker", [str(request.broker_id)])


API = ApiHandler(CARDS[ApiKey.UNREGISTER_BROKER], handle, forwarded_until=_is_seen, deeds=_deeds)
