"""DescribeProducers (key 61): which producers a partition knows, and what they have open there.

The leader of a partition answers. A producer whose transaction is open has the offset at which that
begins; one that no coordinator knows of is a hanging transaction.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.storage.producers.entry import ProducerEntry
from headwater.wire.api_keys import ApiKey
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

_NO_TRANSACTION = -1


async def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    answers: dict[str, TopicResponse] = {}
    # Who names a partition twice is told once: the answer may be a thousand times the question.
    wanted = dict.fromkeys(
        (topic.name, number) for topic in request.topics for number in topic.partition_indexes
    )
    async for name, number in in_turns(wanted):
        topic = answers.setdefault(name, TopicResponse(name=name))
        topic.partitions.append(_describe(name, number, context))
    return DescribeProducersResponse(topics=list(answers.values()))


def _describe(topic: str, number: int, context: RequestContext) -> PartitionResponse:
    try:
        partition = context.broker.partitions.get(topic, number)
        partition.check_leader()
    except KafkaError as error:
        return PartitionResponse(
            partition_index=number, error_code=error.code, error_message=str(error)
        )
    return PartitionResponse(
        partition_index=number,
        active_producers=[
            _producer_state(entry)
            for entry in partition.log.producer_states
            # What brokers write by themselves has no producer that anybody could look for.
            if entry.producer_id != DELIVERY_PRODUCER_ID
        ],
    )


def _producer_state(entry: ProducerEntry) -> ProducerState:
    first_offset = entry.transaction_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=_NO_TRANSACTION if first_offset is None else first_offset,
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_PRODUCERS], handle)
