"""Requests of a transactional producer, asked of a broker's handlers directly."""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.errors import ErrorCode
from headwater.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.support.brokers.handler_broker import HandlerBroker

#: A small topic is made faster.
SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
}


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int

    def at(self, epoch: int) -> Producer:
        return self._replace(epoch=epoch)


async def init(
    broker: HandlerBroker,
    transactional_id: str = "payments",
    *,
    version: int = 6,
    two_phase: bool = False,
    keep: bool = False,
) -> Producer:
    """A producer that is ready."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        enable2_pc=two_phase,
        keep_prepared_txn=keep,
    )
    answer = await broker.ask(request, InitProducerIdResponse, version=version)
    assert answer.error_code == ErrorCode.NONE
    return Producer(transactional_id, answer.producer_id, answer.producer_epoch)


def topics_of(partitions: dict[str, list[int]]) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=name, partitions=numbers)
        for name, numbers in partitions.items()
    ]


def codes_of(topics: list[AddPartitionsToTxnTopicResult]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in topics
        for result in topic.results_by_partition
    }


async def add(
    broker: HandlerBroker,
    producer: Producer,
    partitions: dict[str, list[int]],
    *,
    version: int,
    verify_only: bool = False,
) -> dict[tuple[str, int], int]:
    """The error code of each partition."""
    if version < 4:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics_of(partitions),
        )
        answer = await broker.ask(request, AddPartitionsToTxnResponse, version=version)
        return codes_of(answer.results_by_topic_v3_and_below)
    # In later versions this is what brokers ask.
    broker.become_broker()
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=verify_only,
                topics=topics_of(partitions),
            )
        ]
    )
    answer = await broker.ask(request, AddPartitionsToTxnResponse, version=version)
    assert answer.error_code == ErrorCode.NONE
    (result,) = answer.results_by_transaction
    assert result.transactional_id == producer.transactional_id
    return codes_of(result.topic_results)


async def add_offsets(
    broker: HandlerBroker, producer: Producer, group_id: str, *, version: int = 4
) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group_id,
    )
    answer = await broker.ask(request, AddOffsetsToTxnResponse, version=version)
    return answer.error_code


async def end(
    broker: HandlerBroker, producer: Producer, *, commit: bool = True, version: int = 5
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return await broker.ask(request, EndTxnResponse, version=version)


async def describe(broker: HandlerBroker, *transactional_ids: str) -> list[TransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
    answer = await broker.ask(request, DescribeTransactionsResponse)
    return answer.transaction_states


async def state_of(broker: HandlerBroker, producer: Producer) -> str:
    (described,) = await describe(broker, producer.transactional_id)
    assert described.error_code == ErrorCode.NONE
    return described.transaction_state
