"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

The coordinator is the leader of the partition of the internal topic that the key belongs to. The
topic is made when somebody first asks.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.advertised_addresses import client_side
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.coordinator.key_hash import partition_for
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED_SINCE = 4
_NONE = -1
#: What Kafka says in the place of an error, but only where an answer is about one key.
_NO_ERROR = "NONE"


async def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if context.api_version >= _BATCHED_SINCE:
        return FindCoordinatorResponse(
            coordinators=[
                await _find(key, request.key_type, context) for key in request.coordinator_keys
            ]
        )
    found = await _find(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or _NO_ERROR,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key: str, key_type: int, context: RequestContext) -> Coordinator:
    try:
        kind = _kind(key_type)
        partition_count = await context.broker.coordinator_topics.ensure(kind)
        image = context.broker.image
        leader = image.topics[kind.topic].partitions[partition_for(key, partition_count)].leader
        broker = image.brokers.get(leader)
        address = None if broker is None else client_side(context).address_of(broker)
        if address is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"No broker coordinates {key} at the moment."
            )
    except KafkaError as error:
        return Coordinator(
            key=key,
            node_id=_NONE,
            port=_NONE,
            error_code=error.code,
            error_message=str(error),
        )
    return Coordinator(key=key, node_id=leader, host=address.host, port=address.port)


def _kind(key_type: int) -> CoordinatorKind:
    try:
        return CoordinatorKind(key_type)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no coordinator of kind {key_type} here."
        ) from None


API = ApiHandler(CARDS[ApiKey.FIND_COORDINATOR], handle)
