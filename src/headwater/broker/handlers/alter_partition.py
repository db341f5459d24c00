"""AlterPartition (key 56): a leader has the controller change in-sync replicas.

Each partition has an answer of its own: the state that holds now, or why the
leader's wish is not to be.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    try:
        context.check_speaks_for(request.broker_id)
        return await context.controller.alter_partitions(request)
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error.code)


API = ApiHandler(CARDS[ApiKey.ALTER_PARTITION], handle)
