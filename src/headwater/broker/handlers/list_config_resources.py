"""ListConfigResources (key 74): what there is that has settings.

A group, or a subscription to clients' metrics, is among it if something is set for it. A type that
does not exist is answered with UNSUPPORTED_VERSION. Version 0 is about clients' metrics alone.
"""

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.config_alteration import ResourceType
from headwater.cluster.image.image import ResourceKind
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    known = frozenset(ResourceType)
    asked: frozenset[int] = frozenset(request.resource_types) or known
    if context.api_version == 0:
        asked = frozenset({ResourceType.CLIENT_METRICS})
    if not asked <= known:
        numbers = ", ".join(str(number) for number in sorted(asked - known))
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"There are no resources of type {numbers}."
        )
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in sorted(asked)
            for name in _names(context.broker, resource_type)
        ]
    )


def _names(broker: BrokerContext, resource_type: int) -> Iterator[str]:
    if resource_type == ResourceType.TOPIC:
        yield from sorted(broker.image.topics)
    elif resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        yield from map(str, broker.image.brokers)
    else:
        yield from broker.image.configured(ResourceKind(resource_type))


API = ApiHandler(CARDS[ApiKey.LIST_CONFIG_RESOURCES], handle)
