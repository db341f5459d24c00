"""The transactional ids of one shard, and the checks that all of their requests share."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    TransactionMetadata,
)


class Transactions:
    """An id is here from its first producer on, until it expires."""

    def __init__(self) -> None:
        self._transactions: dict[str, TransactionMetadata] = {}

    def __iter__(self) -> Iterator[TransactionMetadata]:
        """All of them, as they are now: they may change on the way."""
        return iter(list(self._transactions.values()))

    def __len__(self) -> int:
        return len(self._transactions)

    def find(self, transactional_id: str) -> TransactionMetadata | None:
        return self._transactions.get(transactional_id)

    def get(self, transactional_id: str) -> TransactionMetadata:
        """What a producer speaks of; raises where there is no such thing."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id cannot be empty.")
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            raise unknown_producer(transactional_id)
        return metadata

    def put(self, metadata: TransactionMetadata) -> None:
        self._transactions[metadata.transactional_id] = metadata

    def remove(self, transactional_id: str) -> None:
        self._transactions.pop(transactional_id, None)

    def stored_state(self) -> object:
        return dict(self._transactions)


def check_client(metadata: TransactionMetadata, producer: ProducerIdentity) -> None:
    """Raise unless this is the instance that is not fenced."""
    client = metadata.client
    if producer.producer_id != client.producer_id:
        raise unknown_producer(metadata.transactional_id)
    # Nobody was ever given the last epoch: whoever comes with it has made it up.
    if producer != client or producer.producer_epoch > CLIENT_EPOCH_MAX:
        raise fenced(metadata, producer)


def check_not_completing(metadata: TransactionMetadata) -> None:
    """Raise while the outcome of a transaction is on its way to the partitions."""
    if metadata.state.is_prepared:
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"The last transaction of {metadata.transactional_id} is being completed.",
        )


def fenced(metadata: TransactionMetadata, producer: ProducerIdentity) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"Epoch {producer.producer_epoch} of producer {producer.producer_id} is not the present "
        f"one of {metadata.transactional_id}.",
    )


def unknown_producer(transactional_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"The producer id is not that of the transactional id {transactional_id}.",
    )
