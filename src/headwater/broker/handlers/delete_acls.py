"""DeleteAcls (key 31): take from access control lists; there is no authorizer to do so."""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(request: DeleteAclsRequest, _context: RequestContext) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message="No authorizer is configured."
            )
            async for _ in in_turns(request.filters)
        ]
    )


API = ApiHandler(CARDS[ApiKey.DELETE_ACLS], handle)
