"""DescribeTransactions (key 65): the state of transactional ids.

Only the coordinator of an id knows it; others answer NOT_COORDINATOR.
"""

from __future__ import annotations

from collections import defaultdict

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.txn.transaction_metadata import TransactionMetadata
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    response = DescribeTransactionsResponse()
    # Who names an id twice is told once: the answer may be a thousand times the question.
    for transactional_id in dict.fromkeys(request.transactional_ids):
        try:
            described = _described(await _find(transactional_id, context))
        except KafkaError as error:
            described = TransactionState(transactional_id=transactional_id, error_code=error.code)
        response.transaction_states.append(described)
    return response


async def _find(transactional_id: str, context: RequestContext) -> TransactionMetadata:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id cannot be empty.")
    metadata = await context.broker.transactions.read(
        transactional_id, lambda shard, _: shard.transactions.find(transactional_id)
    )
    if metadata is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"There is no transactional id {transactional_id}.",
        )
    return metadata


def _described(metadata: TransactionMetadata) -> TransactionState:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(metadata.partitions):
        topics[topic].append(partition)
    return TransactionState(
        transactional_id=metadata.transactional_id,
        transaction_state=metadata.state.label,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer.producer_id,
        producer_epoch=metadata.producer.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()
        ],
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_TRANSACTIONS], handle)
