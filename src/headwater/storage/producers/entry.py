"""What a partition remembers of one producer.

A producer with an id numbers its records, so that a batch which it sends again after a lost answer
is recognised and a lost batch is noticed. For that it is enough to remember the last five batches
(a producer may have at most five in flight), the producer's epoch, which fences older instances of
the same producer, and where its transaction began, if one is open.

An entry is a value: a change makes a new one. So an append can be worked out in advance and thrown
away if its write fails, and a snapshot can be written by another thread while appends go on. Its
size is bounded by the five batches.

The rules of what may follow are Kafka's, and depend on where a batch comes from (`AppendOrigin`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.storage.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from headwater.wire.delayed.delayed_batch import check_is_delayed
from headwater.wire.records import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    EndTransactionMarker,
    decode_batch,
    decode_control_record,
)

_logger = logging.getLogger(__name__)

#: A producer's `max.in.flight.requests.per.connection` may be this high with idempotence.
BATCHES_RETAINED_MAX: Final = 5

#: Sequence numbers are 31 bits wide; behind this one they start over at zero.
SEQUENCE_MAX: Final = 2**31 - 1
NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class AppendOrigin(Enum):
    """Who wants to append, which decides what is checked."""

    #: A producer: everything is.
    CLIENT = auto()
    #: The group coordinator's transactional offset commits, which carry no sequence numbers, and
    #: the transaction coordinator's markers: epochs are.
    COORDINATOR = auto()
    #: The leader's log, or our own while it is recovered: it was checked when it was first written,
    #: so a stale epoch in it is only worth a line in the log.
    REPLICATION = auto()


class AppendedBatch(NamedTuple):
    """A batch with its final offsets, and what it says if it is a transaction marker."""

    header: BatchHeader
    #: None for data, and for a control batch that compaction has emptied.
    marker: EndTransactionMarker | None = None

    @classmethod
    def read(cls, header: BatchHeader, buffer: Buffer, position: int = 0) -> AppendedBatch:
        """Look into a control batch; a data batch is not touched, and a delayed one counts as one.

        Raises `InvalidRecordError` for a control batch that is neither delayed nor a marker.
        """
        if header.is_control and header.has_producer_id and header.record_count > 0:
            if header.is_delayed:
                check_is_delayed(buffer, position, header)
            else:
                return cls(header, decode_control_record(decode_batch(buffer, position)[0]))
        return cls(header)

    @classmethod
    def read_all(cls, headers: Iterable[BatchHeader], buffer: Buffer) -> list[AppendedBatch]:
        """The same for batches that stand one behind the other."""
        batches = []
        position = 0
        for header in headers:
            batches.append(cls.read(header, buffer, position))
            position += header.size_bytes
        return batches


class BatchMetadata(NamedTuple):
    """A batch that was written: enough to recognise it and to answer for it once more."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """One producer's state; `batches` has the oldest first."""

    producer_id: int
    producer_epoch: int = NO_EPOCH
    coordinator_epoch: int = NO_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    #: The first offset of the open transaction, None if there is none.
    transaction_first_offset: int | None = None
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of data; markers do not count."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch that `header` repeats: same epoch and exactly the same sequences."""
        if header.producer_epoch == self.producer_epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in self.batches:
                if batch.last_sequence == last and batch.first_sequence == first:
                    return batch
        return None

    def continues_with(self, sequence: int) -> bool:
        """Whether a batch of this epoch may start at `sequence`."""
        last = self.batches[-1].last_sequence if self.batches else NO_SEQUENCE
        return sequence == (0 if last == SEQUENCE_MAX else last + 1)

    def with_data(self, header: BatchHeader) -> ProducerEntry:
        """After a data batch. One of another epoch makes those before it irrelevant."""
        delta, timestamp, epoch = (
            header.last_offset_delta,
            header.max_timestamp,
            header.producer_epoch,
        )
        batch = BatchMetadata(header.last_sequence, header.base_offset + delta, delta, timestamp)
        kept = self.batches[1 - BATCHES_RETAINED_MAX :] if epoch == self.producer_epoch else ()
        first = self.transaction_first_offset
        if first is None and header.is_transactional:
            first = header.base_offset
        return ProducerEntry(
            self.producer_id, epoch, self.coordinator_epoch, timestamp, first, (*kept, batch)
        )

    def with_deliveries(self, header: BatchHeader) -> ProducerEntry:
        """After copies of delayed messages: it counts when the last of them was due, and where.

        No producer sends them again, so they are no batch that a later one is compared with.
        """
        due_ms = header.base_timestamp
        copies = BatchMetadata(NO_SEQUENCE, header.last_offset, header.last_offset_delta, due_ms)
        return ProducerEntry(
            self.producer_id, header.producer_epoch, last_timestamp=due_ms, batches=(copies,)
        )

    def with_marker(self, header: BatchHeader, coordinator_epoch: int) -> ProducerEntry:
        """After the marker that ended the transaction.

        With version 2 of the transaction protocol the coordinator raises the producer's epoch with
        the marker; sequence numbers then start at zero again.
        """
        same_epoch = header.producer_epoch == self.producer_epoch
        return ProducerEntry(
            self.producer_id,
            header.producer_epoch,
            coordinator_epoch,
            header.max_timestamp,
            None,
            self.batches if same_epoch else (),
        )


def check_data(
    entry: ProducerEntry, header: BatchHeader, origin: AppendOrigin, partition: TopicPartition
) -> None:
    """Raise unless a data batch may follow what `entry` remembers."""
    if header.producer_epoch < entry.producer_epoch:
        _fence_producer(entry, header, origin, partition)
    if origin is AppendOrigin.CLIENT:
        _check_sequence(entry, header, partition)
    if entry.transaction_first_offset is not None and not header.is_transactional:
        raise InvalidTxnStateError(
            f"Producer {entry.producer_id} wrote outside a transaction to {partition} at offset "
            f"{header.base_offset} while its transaction from offset "
            f"{entry.transaction_first_offset} is open."
        )


def check_marker(
    entry: ProducerEntry,
    header: BatchHeader,
    marker: EndTransactionMarker,
    origin: AppendOrigin,
    partition: TopicPartition,
) -> None:
    """Raise unless a transaction marker may follow what `entry` remembers."""
    # The epoch may be that of the transaction, or one above it.
    if header.producer_epoch < entry.producer_epoch:
        _fence_producer(entry, header, origin, partition)
    if marker.coordinator_epoch < entry.coordinator_epoch:
        sentence = (
            f"The marker for producer {entry.producer_id} at offset {header.base_offset} of "
            f"{partition} has coordinator epoch {marker.coordinator_epoch}, older than "
            f"{entry.coordinator_epoch}, which was seen before."
        )
        if origin is not AppendOrigin.REPLICATION:
            raise TransactionCoordinatorFencedError(sentence)
        _logger.info(sentence)


def _fence_producer(
    entry: ProducerEntry, header: BatchHeader, origin: AppendOrigin, partition: TopicPartition
) -> None:
    sentence = (
        f"Producer {entry.producer_id} wrote to {partition} at offset {header.base_offset} "
        f"with epoch {header.producer_epoch}, older than {entry.producer_epoch}, which was "
        "seen before."
    )
    if origin is not AppendOrigin.REPLICATION:
        raise InvalidProducerEpochError(sentence)
    _logger.warning(sentence)


def _check_sequence(entry: ProducerEntry, header: BatchHeader, partition: TopicPartition) -> None:
    if entry.producer_epoch == NO_EPOCH:
        # Nothing is known of this producer: it is new, or idle for so long that it was forgotten,
        # or retention took every record of it. The last two continue at any number, and refusing
        # them would break a producer that did nothing wrong; so any start is accepted, although a
        # new producer's lost first batch goes unnoticed that way.
        return
    if header.producer_epoch == entry.producer_epoch:
        if not entry.continues_with(header.base_sequence):
            raise OutOfOrderSequenceError(
                f"Producer {entry.producer_id} wrote to {partition} at offset "
                f"{header.base_offset} with sequence number {header.base_sequence}, which does "
                f"not follow {entry.last_sequence}."
            )
    elif header.base_sequence != 0:
        raise OutOfOrderSequenceError(
            f"Producer {entry.producer_id} began epoch {header.producer_epoch} in {partition} at "
            f"offset {header.base_offset} with sequence number {header.base_sequence} instead of "
            f"0, after epoch {entry.producer_epoch}."
        )
