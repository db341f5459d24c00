"""AddOffsetsToTxn (key 25): a group's offsets become part of a transaction.

What is added is the partition of `__consumer_offsets` that the group belongs to, so the topic is
made if it is not there yet. Clients of transaction version 2 do not ask: TxnOffsetCommit does it.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.broker.transactions.requests import error_code
from headwater.coordinator.key_hash import partition_for
from headwater.coordinator.outcome import ProducerIdentity
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

_FENCED_SINCE = 2
_FIRST_VERSION = 0


async def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    try:
        await _add(request, context)
    except KafkaError as error:
        code = error_code(error, context, fenced_since=_FENCED_SINCE)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()


async def _add(request: AddOffsetsToTxnRequest, context: RequestContext) -> None:
    broker = context.broker
    kind = CoordinatorKind.GROUP
    partition_count = await broker.coordinator_topics.ensure(kind)
    home = TopicPartition(kind.topic, partition_for(request.group_id, partition_count))
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    await broker.transactions.ask(
        request.transactional_id,
        lambda shard, now_ms, reply: shard.partitions.add(
            request.transactional_id, producer, frozenset({home}), _FIRST_VERSION, now_ms, reply
        ),
    )


API = ApiHandler(CARDS[ApiKey.ADD_OFFSETS_TO_TXN], handle)
