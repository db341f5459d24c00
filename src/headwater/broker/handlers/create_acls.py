"""CreateAcls (key 30): add to access control lists; there is no authorizer to do so."""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(request: CreateAclsRequest, _context: RequestContext) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclCreationResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No authorizer is configured."
            )
            async for _ in in_turns(request.creations)
        ]
    )


API = ApiHandler(CARDS[ApiKey.CREATE_ACLS], handle)
