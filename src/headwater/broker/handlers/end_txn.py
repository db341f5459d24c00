"""EndTxn (key 26): a transaction is committed or aborted.

The answer means that the outcome is decided for good; partitions get to know it soon after.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.transactions.requests import error_code, with_producer_id
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import EPOCH_PER_TRANSACTION
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FENCED_SINCE = 2
_EPOCH_PER_TRANSACTION_SINCE = 5
_FIRST_VERSION = 0


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    try:
        client = await _end(request, context)
    except KafkaError as error:
        return EndTxnResponse(error_code=error_code(error, context, fenced_since=_FENCED_SINCE))
    return EndTxnResponse(producer_id=client.producer_id, producer_epoch=client.producer_epoch)


async def _end(request: EndTxnRequest, context: RequestContext) -> ProducerIdentity:
    broker = context.broker
    transactional_id = request.transactional_id
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    client_version = _FIRST_VERSION
    if context.api_version >= _EPOCH_PER_TRANSACTION_SINCE:
        client_version = EPOCH_PER_TRANSACTION
    return await with_producer_id(
        broker,
        lambda new_id: broker.transactions.ask(
            transactional_id,
            lambda shard, now_ms, reply: shard.ends.end(
                transactional_id,
                producer,
                request.committed,
                client_version,
                new_id,
                now_ms,
                reply,
            ),
        ),
    )


API = ApiHandler(CARDS[ApiKey.END_TXN], handle)
