"""ExpireDelegationToken (key 40): end a token; plain connections may not.

There are no tokens: see `create_delegation_token`.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

_NEVER = -1


async def handle(
    _request: ExpireDelegationTokenRequest, _context: RequestContext
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=_NEVER
    )


API = ApiHandler(CARDS[ApiKey.EXPIRE_DELEGATION_TOKEN], handle)
