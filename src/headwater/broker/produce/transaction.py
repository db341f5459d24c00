"""The transaction that a produce request is part of, and how its batches get into partitions.

A batch that goes on with a transaction which is open in its partition is written at once. Where it
would begin one, the transaction's coordinator is asked first (KIP-890): from version 12 of Produce
on to add the partition to the transaction, before that whether the producer has done so itself. One
question covers all partitions of a request. Meanwhile later batches of the producer wait behind the
first one of their partition, see `TransactionTurns`; each then finds the transaction open, or asks
for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.transactions.partitions import Verdicts
from headwater.coordinator.outcome import ProducerIdentity
from headwater.replication.partition.partition import Partition
from headwater.storage.producers.transaction_verification import (
    Question,
    TransactionalBatch,
    Verification,
    check_verified,
)

if TYPE_CHECKING:
    from headwater.broker.context import BrokerContext

#: The versions of Produce that know TRANSACTION_ABORTABLE, and that leave it to the leader to add
#: partitions to the transaction.
ABORTABLE_SINCE: Final = 11
ADDS_PARTITIONS_SINCE: Final = 12

#: What a producer cannot know how to take; it tries again after NOT_ENOUGH_REPLICAS, and does not
#: look for another leader then.
_COORDINATOR_TROUBLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class ProduceTransaction:
    """Of one request; its owner is the event loop."""

    __slots__ = (
        "_adds",
        "_answer",
        "_api_version",
        "_broker",
        "_joining",
        "_producer",
        "_transactional_id",
        "_verifies",
    )

    def __init__(
        self,
        broker: BrokerContext,
        transactional_id: str,
        first_batch: TransactionalBatch,
        api_version: int,
    ) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._producer = _producer_of(first_batch)
        self._api_version = api_version
        self._adds = api_version >= ADDS_PARTITIONS_SINCE
        self._verifies = self._adds or broker.settings.boolean(
            "transaction.partition.verification.enable"
        )
        self._joining: dict[Partition, Question] = {}
        self._answer: asyncio.Task[Verdicts] | None = None

    def check_producer(self, batch: TransactionalBatch) -> None:
        """A transaction has one producer."""
        if _producer_of(batch) != self._producer:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "The batches of a transaction come from more than one producer.",
            )

    def is_settled(self, partition: Partition, batch: TransactionalBatch) -> bool:
        """Whether the batch may be written without a question, or a wait for others of its kind."""
        return not self._verifies or (
            not partition.transaction_turns.is_busy(batch.producer_id)
            and _is_open(partition, batch)
        )

    def join(self, partition: Partition, batch: TransactionalBatch) -> Verification:
        """Begin to verify the first batch of a partition, together with others of the request."""
        question = self._joining[partition] = self._begin(partition, batch)
        return question.verification

    async def wait(self, partition: Partition) -> None:
        """Wait for the coordinator's answer to what has joined; raise if it does not agree."""
        if self._answer is None:
            self._answer = self._broker.tasks.spawn(self._ask(self._joining))
        verdicts = await asyncio.shield(self._answer)
        self._check_verdict(verdicts, partition)

    async def verify(self, partition: Partition, batch: TransactionalBatch) -> Verification | None:
        """The same for a batch alone, after those before it; None if they have opened the way."""
        if _is_open(partition, batch):
            return None
        question = self._begin(partition, batch)
        self._check_verdict(await self._ask({partition: question}), partition)
        return question.verification

    def check(
        self, partition: Partition, batch: TransactionalBatch, verification: Verification | None
    ) -> None:
        """Raise unless the batch may be written now; much may have happened since it came."""
        if self._verifies:
            check_verified(
                partition.log.producer_states, batch, verification, starts_at_zero=self._adds
            )

    def _begin(self, partition: Partition, batch: TransactionalBatch) -> Question:
        partition.check_leader()
        states = partition.log.producer_states
        verification = states.verifications.begin(batch, self._broker.clock.wall_ms())
        return Question(states, batch, verification)

    async def _ask(self, joining: Mapping[Partition, Question]) -> Verdicts:
        return await self._broker.transaction_partitions.ensure(
            self._transactional_id,
            self._producer,
            [partition.topic_partition for partition in joining],
            add=self._adds,
            questions=list(joining.values()),
        )

    def _check_verdict(self, verdicts: Verdicts, partition: Partition) -> None:
        error = verdicts[partition.topic_partition]
        if error is not None:
            raise as_producer_error(error, self._api_version)


def _producer_of(batch: TransactionalBatch) -> ProducerIdentity:
    return ProducerIdentity(batch.producer_id, batch.producer_epoch)


def _is_open(partition: Partition, batch: TransactionalBatch) -> bool:
    return partition.log.producer_states.has_open_transaction(
        batch.producer_id, batch.producer_epoch
    )


def as_producer_error(error: KafkaError, api_version: int) -> KafkaError:
    """A coordinator's error as a producer is told, which knows none of those of coordinators."""
    code = error.code
    if code in _COORDINATOR_TROUBLE or (
        # It is common while a transaction is completed, and newer producers wait for it.
        code is ErrorCode.CONCURRENT_TRANSACTIONS and api_version < ADDS_PARTITIONS_SINCE
    ):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"It is not known whether the partition is part of the transaction: {code.name}.",
        )
    if code is ErrorCode.TRANSACTION_ABORTABLE and api_version < ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "The partition is not part of the transaction.")
    return error
