"""DescribeAcls (key 29): what access control lists say; there is no authorizer to tell."""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def handle(_request: DescribeAclsRequest, _context: RequestContext) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No authorizer is configured."
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_ACLS], handle)
