"""RenewDelegationToken (key 39): have a token be valid for longer; plain connections may not.

There are no tokens: see `create_delegation_token`.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_NEVER = -1


async def handle(
    _request: RenewDelegationTokenRequest, _context: RequestContext
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=_NEVER
    )


API = ApiHandler(CARDS[ApiKey.RENEW_DELEGATION_TOKEN], handle)
