"""AllocateProducerIds (key 67): the controller gives a broker a block of producer ids.

A block is noted durably before it is given away, so no id is ever given twice.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.registered_brokers import check_broker_epoch
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def handle(
    request: AllocateProducerIdsRequest, context: RequestContext
) -> AllocateProducerIdsResponse:
    try:
        context.check_speaks_for(request.broker_id)
        controller = context.controller
        check_broker_epoch(request.broker_id, request.broker_epoch, controller.image)
        block = await controller.allocate_producer_ids(request.broker_id)
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


API = ApiHandler(CARDS[ApiKey.ALLOCATE_PRODUCER_IDS], handle)
