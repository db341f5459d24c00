"""AddPartitionsToTxn (key 24): partitions become part of a transaction.

From version 4 on it is for brokers. What they add is part of a transaction of version 2, since
their clients leave that to them (KIP-890). What is not part of the transaction is
TRANSACTION_ABORTABLE. Others hear CLUSTER_AUTHORIZATION_FAILED, as they do of a Kafka whose ACLs
allow cluster actions to brokers alone.

All partitions of a transaction are added, or none: if one does not exist, the others get
OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.transactions.requests import error_code
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import EPOCH_PER_TRANSACTION
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_FENCED_SINCE = 2
_BATCHED_SINCE = 4
_FIRST_VERSION = 0


async def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    if context.api_version < _BATCHED_SINCE:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=await _serve(transaction, context)
        )
    if not context.is_broker:
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = await asyncio.gather(*(_serve(each, context) for each in request.transactions))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=topics
            )
            for transaction, topics in zip(request.transactions, results, strict=True)
        ]
    )


async def _serve(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> list[AddPartitionsToTxnTopicResult]:
    partitions = frozenset(
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    )
    codes = _unknown(partitions, context)
    if not codes:
        try:
            codes = await _ask_coordinator(transaction, partitions, context)
        except KafkaError as error:
            code = error_code(error, context, fenced_since=_FENCED_SINCE)
            codes = dict.fromkeys(partitions, code)
    return _results(transaction.topics, codes)


def _unknown(
    partitions: frozenset[TopicPartition], context: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """What to say to each partition if there are some that do not exist; else nothing."""
    topics = context.broker.image.topics
    missing = set()
    for each in partitions:
        topic = topics.get(each.topic)
        if topic is None or not 0 <= each.partition < len(topic.partitions):
            missing.add(each)
    if not missing:
        return {}
    return {
        each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if each in missing
        else ErrorCode.OPERATION_NOT_ATTEMPTED
        for each in partitions
    }


async def _ask_coordinator(
    transaction: AddPartitionsToTxnTransaction,
    partitions: frozenset[TopicPartition],
    context: RequestContext,
) -> dict[TopicPartition, ErrorCode]:
    transactional_id = transaction.transactional_id
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    runtime = context.broker.transactions
    if transaction.verify_only:
        added = await runtime.read(
            transactional_id,
            lambda shard, _: shard.partitions.verify(transactional_id, producer, partitions),
        )
    else:
        is_batched = context.api_version >= _BATCHED_SINCE
        client_version = EPOCH_PER_TRANSACTION if is_batched else _FIRST_VERSION
        added = await runtime.ask(
            transactional_id,
            lambda shard, now_ms, reply: shard.partitions.add(
                transactional_id, producer, partitions, client_version, now_ms, reply
            ),
        )
    codes = dict.fromkeys(added, ErrorCode.NONE)
    if len(added) < len(partitions):
        codes.update(dict.fromkeys(partitions - added, ErrorCode.TRANSACTION_ABORTABLE))
    return codes


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: Mapping[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition,
                    partition_error_code=codes[TopicPartition(topic.name, partition)],
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


API = ApiHandler(CARDS[ApiKey.ADD_PARTITIONS_TO_TXN], handle)
