"""AlterClientQuotas (key 49): set and remove quotas; there are none, so to set one is refused.

To remove what is not there is done as soon as it is asked for, as in Kafka.
"""

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntryData,
)


async def handle(
    request: AlterClientQuotasRequest, _context: RequestContext
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[_answer(entry) async for entry in in_turns(request.entries)]
    )


def _answer(entry: RequestEntryData) -> ResponseEntryData:
    answer = ResponseEntryData(error_message=None, entity=entry.entity)
    if not all(operation.remove for operation in entry.ops):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        answer.error_message = "There are no quotas here, so none can be set."
    return answer


API = ApiHandler(CARDS[ApiKey.ALTER_CLIENT_QUOTAS], handle)
