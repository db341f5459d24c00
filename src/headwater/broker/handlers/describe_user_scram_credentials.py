"""DescribeUserScramCredentials (key 50): which users can log in with SCRAM; nobody logs in here."""

from collections import Counter

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, _context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_answer(user, count) async for user, count in in_turns(counts.items())],
    )


def _answer(user: str, count: int) -> DescribeUserScramCredentialsResult:
    code = ErrorCode.RESOURCE_NOT_FOUND if count == 1 else ErrorCode.DUPLICATE_RESOURCE
    message = "This user has no credentials." if count == 1 else code.message
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message)


API = ApiHandler(CARDS[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS], handle)
