"""AlterUserScramCredentials (key 51): set and remove SCRAM credentials; nobody logs in here.

So there are none to remove, and none can be set. There is one answer for each user.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

_NOTHING_TO_REMOVE = ErrorCode.RESOURCE_NOT_FOUND, "This user has no credentials."
_CANNOT_BE_SET = (
    ErrorCode.UNSUPPORTED_VERSION,
    "Clients do not log in here, so there are no credentials to set.",
)


async def handle(
    request: AlterUserScramCredentialsRequest, _context: RequestContext
) -> AlterUserScramCredentialsResponse:
    outcomes = {each.name: _NOTHING_TO_REMOVE for each in request.deletions}
    outcomes |= {each.name: _CANNOT_BE_SET for each in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            async for user, (code, message) in in_turns(outcomes.items())
        ]
    )


API = ApiHandler(CARDS[ApiKey.ALTER_USER_SCRAM_CREDENTIALS], handle)
