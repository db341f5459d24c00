"""InitProducerId (API 22), versions 0 to 6: a producer id and epoch for an idempotent producer.

- v0: transactional id and transaction timeout.
- v2: flexible.
- v3: the producer's present id and epoch, when it wants to go on after an error (KIP-360).
- v4: PRODUCER_FENCED for producers whose transactional id was taken over.
- v5: TRANSACTION_ABORTABLE.
- v6: two-phase commit.

A producer without a transactional id gets a new id each time, whatever it had before: nothing ties
the old one to it, and its sequence numbers begin anew. Transactions are not served; a producer with
a transactional id hears that there is no coordinator for it, which it takes for a passing state.
"""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.api_handler import ApiHandler
from headwater.broker.context import RequestContext
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1
_FIRST_EPOCH = 0


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    try:
        _check(request)
        producer_id = await context.broker.producer_ids.next_id()
    except KafkaError as error:
        context.record_error(error.code)
        return InitProducerIdResponse(
            error_code=error.code, producer_id=_NONE, producer_epoch=_NONE
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=_FIRST_EPOCH)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id cannot be empty.")
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A producer id and its epoch are given together or not."
        )
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Transactions are not served.")


API = ApiHandler(ApiKey.INIT_PRODUCER_ID, handle)
