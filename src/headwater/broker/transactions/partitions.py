"""Asks a transaction's coordinator whether partitions are part of it, or adds them to it.

The coordinator is the leader of the transactional id's partition of `__transaction_state`; it may
be this broker. Producers of older versions have told it of a partition before they write to it, so
it is only asked (`verify_only`); newer ones leave that to the leader that gets their batch, which
adds the partition with the same request.

A coordinator that is busy with the end of the last transaction answers CONCURRENT_TRANSACTIONS. It
will be done in a moment, so when partitions are added it is asked again here, before the client has
to come back for it: after a millisecond, then after twice as long each time, which is at most
`add.partitions.to.txn.retry.backoff.ms`, and for `add.partitions.to.txn.retry.backoff.max.ms` in
all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.topics.coordinator_topics import TRANSACTIONS_TOPIC
from headwater.cluster.image.image import NO_LEADER
from headwater.coordinator.key_hash import partition_for
from headwater.coordinator.outcome import ProducerIdentity
from headwater.storage.producers.transaction_verification import Question
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_DELAY_MIN_MS: Final = 1
#: A transaction has one end before it; more of them are repetitions.
_VOID_COUNT_MAX: Final = 3

#: An error for each partition that is not part of the transaction, None for those that are.
Verdicts = Mapping[TopicPartition, KafkaError | None]


class TransactionPartitions:
    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def ensure(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
        questions: Sequence[Question] = (),
    ) -> Verdicts:
        """Whether partitions are part of the producer's transaction, each by itself.

        The errors are the coordinator's, but that a producer whose epoch is over hears
        INVALID_PRODUCER_EPOCH, and a coordinator that cannot be reached is NETWORK_EXCEPTION.

        A producer may come with its next transaction before the end of the last one stands in the
        partition. That end makes the answer to any of `questions` void that was on its way, so the
        coordinator is asked once more then.
        """
        settings = self._context.settings
        if not add:
            return await self._ask(transactional_id, producer, partitions, add=False)
        tries_ms = min(
            settings.integer("add.partitions.to.txn.retry.backoff.max.ms"),
            settings.integer("request.timeout.ms"),
        )
        end_s = self._context.loop_time() + tries_ms / 1000
        delay_ms = _DELAY_MIN_MS
        void_count = 0
        while True:
            verdicts = await self._ask(transactional_id, producer, partitions, add=True)
            if any(
                error is not None and error.code is ErrorCode.CONCURRENT_TRANSACTIONS
                for error in verdicts.values()
            ):
                if self._context.loop_time() >= end_s:
                    return verdicts
                delay_ms = min(delay_ms, settings.integer("add.partitions.to.txn.retry.backoff.ms"))
                await asyncio.sleep(delay_ms / 1000)
                delay_ms *= 2
            elif void_count < _VOID_COUNT_MAX and any(each.is_void for each in questions):
                void_count += 1
            else:
                return verdicts
            for question in questions:
                question.renew()

    async def _ask(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> Verdicts:
        request = _request(transactional_id, producer, partitions, add=add)
        timeout_s = self._context.settings.integer("request.timeout.ms") / 1000
        try:
            coordinator = self._coordinator(transactional_id)
            response = await self._context.channels.send(coordinator, request, timeout_s)
        except KafkaError as error:
            return dict.fromkeys(partitions, _unreachable(error))
        return _verdicts(response, transactional_id, partitions)

    def _coordinator(self, transactional_id: str) -> int:
        topic = self._context.image.topics.get(TRANSACTIONS_TOPIC)
        leader = NO_LEADER
        if topic is not None:
            number = partition_for(transactional_id, len(topic.partitions))
            leader = topic.partitions[number].leader
        if leader == NO_LEADER:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"No broker coordinates {transactional_id} at the moment.",
            )
        return leader


def _request(
    transactional_id: str,
    producer: ProducerIdentity,
    partitions: Sequence[TopicPartition],
    *,
    add: bool,
) -> AddPartitionsToTxnRequest:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, number in partitions:
        topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(number)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=not add,
        topics=list(topics.values()),
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _verdicts(
    response: AddPartitionsToTxnResponse,
    transactional_id: str,
    partitions: Sequence[TopicPartition],
) -> Verdicts:
    code = response.error_code
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        code = ErrorCode.INVALID_TXN_STATE  # It is not the client who lacks a right.
    if code != ErrorCode.NONE:
        return dict.fromkeys(partitions, KafkaError(ErrorCode.from_wire(code)))
    codes = {
        TopicPartition(topic.name, result.partition_index): result.partition_error_code
        for transaction in response.results_by_transaction
        if transaction.transactional_id == transactional_id
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }
    return {
        partition: _partition_error(codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR))
        for partition in partitions
    }


def _partition_error(code: int) -> KafkaError | None:
    if code == ErrorCode.NONE:
        return None
    if code == ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return KafkaError(ErrorCode.from_wire(code))


def _unreachable(error: KafkaError) -> KafkaError:
    if error.code is ErrorCode.REQUEST_TIMED_OUT:
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error))
    return error
