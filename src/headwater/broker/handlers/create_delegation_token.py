"""CreateDelegationToken (key 38): a token to log in with; plain connections get none.

So far every connection is a plain one, on which Kafka hands out no tokens either.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

#: Who a client is that has not logged in.
_ANONYMOUS = "User", "ANONYMOUS"
_NEVER = -1


async def handle(
    _request: CreateDelegationTokenRequest, _context: RequestContext
) -> CreateDelegationTokenResponse:
    kind, name = _ANONYMOUS
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
    )


API = ApiHandler(CARDS[ApiKey.CREATE_DELEGATION_TOKEN], handle)
