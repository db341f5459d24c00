"""All transactional ids of one partition of `__transaction_state`, and what they can do."""

from __future__ import annotations

import logging

from headwater.base.errors import KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord, read_version
from headwater.coordinator.txn.marker_handout import MarkerHandout
from headwater.coordinator.txn.partition_addition import PartitionAddition
from headwater.coordinator.txn.producer_initialization import ProducerInitialization
from headwater.coordinator.txn.transaction_end import TransactionEnd
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import PreparedTransaction
from headwater.coordinator.txn.transaction_record import (
    TRANSACTION_KEY_VERSION,
    transaction_metadata_of,
    transactional_id_of,
)
from headwater.coordinator.txn.transaction_upkeep import TransactionUpkeep
from headwater.coordinator.txn.transactions import Transactions
from headwater.wire.codec import MalformedMessageError

_logger = logging.getLogger(__name__)


class TransactionShard:
    def __init__(self, environment: TransactionEnvironment) -> None:
        self.transactions = Transactions()
        self._handout = MarkerHandout(environment, self.transactions)
        self.producers = ProducerInitialization(environment, self.transactions, self._handout)
        self.partitions = PartitionAddition(self.transactions)
        self.ends = TransactionEnd(self.transactions, self._handout)
        self._upkeep = TransactionUpkeep(environment, self.transactions, self._handout)

    def markers_written(self, prepared: PreparedTransaction, now_ms: int) -> Change[bool]:
        """The markers that were asked for stand in all partitions: the transaction is complete."""
        return self.ends.markers_written(prepared, now_ms)

    def replay(
        self, record: StoredRecord, offset: int, producer: ProducerIdentity | None, now_ms: int
    ) -> None:
        del producer, now_ms
        try:
            if read_version(record.key) != TRANSACTION_KEY_VERSION:
                return
            transactional_id = transactional_id_of(record.key)
            if record.value is None:
                self.transactions.remove(transactional_id)
            else:
                self.transactions.put(transaction_metadata_of(transactional_id, record.value))
        except MalformedMessageError as error:
            # Nobody can read it, also not after another attempt; the other ids go on.
            _logger.error(
                "a record at offset %d of a transaction cannot be read: %s", offset, error
            )
        else:
            self._handout.on_replayed(transactional_id)

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        """Nothing: what is known of transactions is not itself written in transactions."""

    def on_loaded(self, now_ms: int) -> None:
        del now_ms
        self._handout.on_loaded()
        self._upkeep.on_loaded()

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        """Nothing: whoever writes the markers knows which partitions there still are."""
        del change, now_ms
        return []

    def close(self, error: KafkaError) -> None:
        """Nothing: no answer waits for anything but records to be safe."""

    def stored_state(self) -> object:
        return self.transactions.stored_state()
