"""Partitions become part of a transaction before anything is written to them.

Clients of the first protocol ask for it themselves. Since KIP-890 the broker that leads a partition
does: it adds the partition when the first batch of a transaction comes, or, for older clients,
verifies that it was added, so that no batch can be left hanging in a transaction that nobody ends.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import Outcome, ProducerIdentity, Reply
from headwater.coordinator.txn.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)
from headwater.coordinator.txn.transaction_record import transaction_record
from headwater.coordinator.txn.transactions import (
    Transactions,
    check_client,
    check_not_completing,
)


class PartitionAddition:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        client_version: int,
        now_ms: int,
        reply: Reply[frozenset[TopicPartition]],
    ) -> Outcome:
        """All of them become part of the transaction, or none; replies with all."""
        metadata = self._writable(transactional_id, producer)
        if metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:
            return Outcome((), lambda: reply.send(partitions), reply.fail, follows_writes=True)
        added = metadata.with_partitions(partitions, client_version=client_version, now_ms=now_ms)
        return Outcome([transaction_record(added)], lambda: reply.send(partitions), reply.fail)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
    ) -> frozenset[TopicPartition]:
        """Those that are part of the transaction."""
        return partitions & self._writable(transactional_id, producer).partitions

    def _writable(self, transactional_id: str, producer: ProducerIdentity) -> TransactionMetadata:
        metadata = self._transactions.get(transactional_id)
        check_client(metadata, producer)
        check_not_completing(metadata)
        if metadata.is_kept:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"The prepared transaction of {transactional_id} can only be ended.",
            )
        return metadata
