"""DescribeClientQuotas (key 48): what limits clients; there are no quotas, so the answer is empty.

Quotas of anything but users, client ids and addresses Kafka does not know either.
"""

from headwater.base.errors import ErrorCode
from headwater.base.printable import shortened
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_ENTITY_TYPES = frozenset({"user", "client-id", "ip"})


async def handle(
    request: DescribeClientQuotasRequest, _context: RequestContext
) -> DescribeClientQuotasResponse:
    for component in request.components:
        if component.entity_type not in _ENTITY_TYPES:
            return DescribeClientQuotasResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message=f"There are no quotas of {shortened(component.entity_type)!r}.",
                entries=None,
            )
    return DescribeClientQuotasResponse(entries=[])


API = ApiHandler(CARDS[ApiKey.DESCRIBE_CLIENT_QUOTAS], handle)
