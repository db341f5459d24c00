"""What `log dump` finds in files, as values: `dump` yields them, its two writers show them.

Most are plain facts. A `Fault` says that a file does not hold what it should; a dump that met one
is not a success, though it may have gone on behind it. An `OffsetGap` is none: compaction leaves
gaps in a sound log.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.storage.directories.broker_metadata import BrokerMetadata
from headwater.storage.indexes.hidden_index import HiddenStretch
from headwater.storage.indexes.offset_index import OffsetPosition
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.leader_epochs import EpochEntry
from headwater.storage.producers.entry import ProducerEntry
from headwater.wire.delayed.delayed_batch import DelayedRecord
from headwater.wire.records import BatchHeader, ControlType, EndTransactionMarker, Record


class FileStart(NamedTuple):
    """The items that follow are of this file."""

    path: str


class LogStart(NamedTuple):
    """A log begins, whose name gives this offset; None if its name gives none."""

    starting_offset: int | None


class QuorumSnapshotStart(NamedTuple):
    """A snapshot of KRaft's metadata log begins; the bootstrap one has no end offset and epoch."""

    end_offset: int | None
    epoch: int | None


class BatchItem(NamedTuple):
    position: int
    header: BatchHeader
    crc_is_valid: bool


class RecordItem(NamedTuple):
    """A record of the batch that came before; a control record says what it marks."""

    header: BatchHeader
    record: Record
    control_type: ControlType | None = None
    marker: EndTransactionMarker | None = None
    #: What a record of a delayed batch says, and the record as it was sent, if it has one.
    delayed: DelayedRecord | None = None
    sent: Record | None = None

    @property
    def sequence(self) -> int:
        first = self.header.base_sequence
        if first < 0:
            return -1
        return (first + self.record.offset - self.header.base_offset) % 2**31


class InvalidTail(NamedTuple):
    """How much of the end of a log file holds no batches."""

    name: str
    size: int


class IndexRemark(NamedTuple):
    """An index is empty, or passed the check that a starting broker makes."""

    path: str
    is_empty: bool


class TransactionEntry(NamedTuple):
    version: int
    transaction: AbortedTransaction


class OffsetEntry(NamedTuple):
    """A line of one of a log directory's four checkpoint files."""

    partition: TopicPartition
    offset: int


class TopicIdItem(NamedTuple):
    topic_id: uuid.UUID


class OffsetGap(NamedTuple):
    """Consecutive records whose offsets are not."""

    path: str
    offset: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Something is wrong with a file; `position` is where in it, if that is known."""

    kind: ClassVar[str] = "fault"

    path: str
    sentence: str
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ChecksumFault(Fault):
    """A batch's checksum fails, which the batch's own line says too."""

    kind: ClassVar[str] = "checksum"


@dataclass(frozen=True, slots=True)
class OffsetMismatch(Fault):
    """An offset index entry does not lead to the batch that ends with its offset."""

    kind: ClassVar[str] = "offset_mismatch"

    index_offset: int = -1
    log_offset: int = -1


@dataclass(frozen=True, slots=True)
class TimestampMismatch(Fault):
    """A time index entry has another timestamp than the batch at its offset."""

    kind: ClassVar[str] = "timestamp_mismatch"

    index_timestamp: int = -1
    log_timestamp: int = -1


@dataclass(frozen=True, slots=True)
class TimestampDisorder(Fault):
    """A time index entry is not younger than the one in front of it."""

    kind: ClassVar[str] = "timestamp_disorder"

    index_timestamp: int = -1
    previous_timestamp: int = -1


@dataclass(frozen=True, slots=True)
class IndexedOffsetMissing(Fault):
    """No batch ends with the offset of a time index entry; the next one's last offset, or -1."""

    kind: ClassVar[str] = "offset_missing"

    index_offset: int = -1
    log_offset: int = -1


DumpItem = (
    FileStart
    | LogStart
    | QuorumSnapshotStart
    | BatchItem
    | RecordItem
    | InvalidTail
    | IndexRemark
    | HiddenStretch
    | OffsetPosition
    | TimestampOffset
    | TransactionEntry
    | ProducerEntry
    | EpochEntry
    | OffsetEntry
    | TopicIdItem
    | BrokerMetadata
    | OffsetGap
    | Fault
)
