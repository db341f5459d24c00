"""How `__transaction_state` stores a transactional id: the key names it, the value tells its state.

The value is written in version 1, whose later additions are tagged, so that older brokers can read
it. The epoch of the next producer is such an addition, of KIP-939: it is written for a prepared
transaction that was kept for a new instance; otherwise a next producer begins at its first epoch.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.stored_record import (
    StoredRecord,
    decode_versioned,
    encode_versioned,
)
from headwater.coordinator.txn.transaction_metadata import (
    FIRST_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    TransactionState,
)
from headwater.wire.codec import MalformedMessageError
from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

#: The version of a key that tells a transactional id.
TRANSACTION_KEY_VERSION: Final = 0

_VALUE_VERSION: Final = 1
_NO_EPOCH: Final = -1


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)

    def __init__(self, *, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id

    VERSIONS = VersionRange(TRANSACTION_KEY_VERSION, TRANSACTION_KEY_VERSION)

    FIELDS = (Field("transactional_id", "string", (0, 0)),)


class TopicPartitions(Struct):
    __slots__ = ("partition_ids", "topic")

    def __init__(self, *, topic: str = "", partition_ids: list[int] = NEW) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is NEW else partition_ids

    FIELDS = (
        Field("topic", "string", (0, 1)),
        Field("partition_ids", "int32", (0, 1), array=True),
    )


class TransactionLogValue(Message):
    __slots__ = (
        "client_transaction_version",
        "next_producer_epoch",
        "next_producer_id",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "transaction_last_update_timestamp_ms",
        "transaction_partitions",
        "transaction_start_timestamp_ms",
        "transaction_status",
        "transaction_timeout_ms",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = NO_PRODUCER_ID,
        next_producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = 0,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TopicPartitions] | None = NEW,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
        next_producer_epoch: int = _NO_EPOCH,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = (
            [] if transaction_partitions is NEW else transaction_partitions
        )
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.next_producer_epoch = next_producer_epoch

    VERSIONS = VersionRange(0, 1)
    FLEXIBLE_SINCE = 1

    FIELDS = (
        Field("producer_id", "int64", (0, 1)),
        Field("previous_producer_id", "int64", (1, 1), tag=0, tagged=(1, 1)),
        Field("next_producer_id", "int64", (1, 1), tag=1, tagged=(1, 1)),
        Field("producer_epoch", "int16", (0, 1)),
        Field("transaction_timeout_ms", "int32", (0, 1)),
        Field("transaction_status", "int8", (0, 1)),
        Field("transaction_partitions", TopicPartitions, (0, 1), array=True, nullable=(0, 1)),
        Field("transaction_last_update_timestamp_ms", "int64", (0, 1)),
        Field("transaction_start_timestamp_ms", "int64", (0, 1)),
        Field("client_transaction_version", "int16", (1, 1), tag=2, tagged=(1, 1)),
        Field("next_producer_epoch", "int16", (1, 1), tag=3, tagged=(1, 1)),
    )


def transaction_record(metadata: TransactionMetadata) -> StoredRecord:
    """The record that tells all of this."""
    producer, following = metadata.producer, metadata.next_producer
    value = TransactionLogValue(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        previous_producer_id=metadata.previous_producer_id,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=_by_topic(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )
    if following is not None:
        value.next_producer_id = following.producer_id
        if following.producer_epoch != FIRST_EPOCH:
            value.next_producer_epoch = following.producer_epoch
    return StoredRecord(_key(metadata.transactional_id), encode_versioned(value, _VALUE_VERSION))


def transaction_tombstone(transactional_id: str) -> StoredRecord:
    """The record that makes everybody forget a transactional id."""
    return StoredRecord(_key(transactional_id), None)


def transactional_id_of(key: bytes) -> str:
    """Which id a record is about; raises `MalformedMessageError`."""
    return decode_versioned(TransactionLogKey, key).transactional_id


def transaction_metadata_of(transactional_id: str, value: bytes) -> TransactionMetadata:
    """What a record tells of an id; raises `MalformedMessageError`."""
    stored = decode_versioned(TransactionLogValue, value)
    try:
        state = TransactionState(stored.transaction_status)
    except ValueError:
        raise MalformedMessageError(
            f"A transaction has no state {stored.transaction_status}."
        ) from None
    following = None
    if stored.next_producer_id != NO_PRODUCER_ID:
        epoch = max(stored.next_producer_epoch, FIRST_EPOCH)
        following = ProducerIdentity(stored.next_producer_id, epoch)
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer=ProducerIdentity(stored.producer_id, stored.producer_epoch),
        previous_producer_id=stored.previous_producer_id,
        next_producer=following,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(of_topic.topic, partition)
            for of_topic in stored.transaction_partitions or ()
            for partition in of_topic.partition_ids
        ),
        start_ms=stored.transaction_start_timestamp_ms,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        client_version=stored.client_transaction_version,
    )


def _key(transactional_id: str) -> bytes:
    return encode_versioned(
        TransactionLogKey(transactional_id=transactional_id), TRANSACTION_KEY_VERSION
    )


def _by_topic(metadata: TransactionMetadata) -> list[TopicPartitions] | None:
    if metadata.state is TransactionState.EMPTY:
        return None
    partitions: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(metadata.partitions):
        partitions[topic].append(partition)
    return [TopicPartitions(topic=topic, partition_ids=ids) for topic, ids in partitions.items()]
