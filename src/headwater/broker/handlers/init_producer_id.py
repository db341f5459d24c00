"""InitProducerId (key 22): a producer id and epoch.

A producer without a transactional id gets a new id each time, whatever it had before: nothing ties
the old one to it, and its sequence numbers begin anew. For one with a transactional id its
coordinator decides.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.broker.transactions.requests import error_code, with_producer_id
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.producer_initialization import (
    InitialisationRequest,
    InitialisedProducer,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1
_FIRST_EPOCH = 0
_FENCED_SINCE = 4
_NO_TRANSACTION = ProducerIdentity(_NONE, _NONE)


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    try:
        _check(request)
        if request.transactional_id is None:
            producer_id = await context.broker.producer_ids.next_id()
            initialised = InitialisedProducer(ProducerIdentity(producer_id, _FIRST_EPOCH))
        else:
            initialised = await _ask_coordinator(request, request.transactional_id, context)
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=error_code(error, context, fenced_since=_FENCED_SINCE),
            producer_id=_NONE,
            producer_epoch=_NONE,
        )
    ongoing = initialised.ongoing or _NO_TRANSACTION
    return InitProducerIdResponse(
        producer_id=initialised.producer.producer_id,
        producer_epoch=initialised.producer.producer_epoch,
        ongoing_txn_producer_id=ongoing.producer_id,
        ongoing_txn_producer_epoch=ongoing.producer_epoch,
    )


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id cannot be empty.")
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A producer id and its epoch are given together or not."
        )


async def _ask_coordinator(
    request: InitProducerIdRequest, transactional_id: str, context: RequestContext
) -> InitialisedProducer:
    broker = context.broker
    await broker.coordinator_topics.ensure(CoordinatorKind.TRANSACTION)
    expected = None
    if request.producer_id != _NONE:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    wanted = InitialisationRequest(
        transactional_id=transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=expected,
        is_two_phase=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )
    return await with_producer_id(
        broker,
        lambda new_id: broker.transactions.ask(
            transactional_id,
            lambda shard, now_ms, reply: shard.producers.initialise(wanted, new_id, now_ms, reply),
        ),
    )


API = ApiHandler(CARDS[ApiKey.INIT_PRODUCER_ID], handle)
