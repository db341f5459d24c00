"""DescribeCluster (key 60): the brokers and the id of the cluster.

This is a broker's endpoint, and a broker is registered while it is alive, and no longer.
"""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.access.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.advertised_addresses import client_side
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.partition_description import ReachableBrokers
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


async def handle(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    try:
        _check_endpoint_type(request.endpoint_type)
    except KafkaError as error:
        return DescribeClusterResponse(error_code=error.code, error_message=str(error))
    image = context.broker.image
    reachable = ReachableBrokers(image, client_side(context))
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=reachable.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker_id,
                host=address.host,
                port=address.port,
                rack=image.brokers[broker_id].rack,
            )
            for broker_id, address in reachable.addresses.items()
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == _CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "This is a broker's endpoint, not a controller's."
        )
    if endpoint_type != _BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"There is no endpoint type {endpoint_type}."
        )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_CLUSTER], handle)
