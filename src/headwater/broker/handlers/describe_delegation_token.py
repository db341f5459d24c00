"""DescribeDelegationToken (key 41): the tokens that there are; plain connections may not ask.

There are no tokens: see `create_delegation_token`.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


async def handle(
    _request: DescribeDelegationTokenRequest, _context: RequestContext
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_DELEGATION_TOKEN], handle)
