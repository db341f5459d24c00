"""The values that `parse_dump` reads out of the report of Apache Kafka's log dumper.

Names follow the dumper's, in Headwater's spelling.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DumpedRecord:
    offset: int
    timestamp_type: str
    timestamp: int
    key_size_bytes: int  # -1 for a null key
    value_size_bytes: int  # -1 for a null value
    sequence: int
    header_keys: tuple[str, ...]
    key: str | None = None  # also None where the dumper was not asked for data
    payload: str | None = None
    marker: str | None = None  # of a control record: COMMIT, ABORT or another type's name
    coordinator_epoch: int | None = None


@dataclass(frozen=True)
class DumpedBatch:
    base_offset: int
    last_offset: int
    count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    partition_leader_epoch: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    position: int
    timestamp_type: str
    max_timestamp: int
    size_bytes: int
    magic: int
    compression: str
    crc: int
    is_valid: bool
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass(frozen=True)
class OffsetIndexEntry:
    offset: int
    position: int


@dataclass(frozen=True)
class TimeIndexEntry:
    timestamp: int
    offset: int


@dataclass(frozen=True)
class AbortedTransactionEntry:
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True)
class ProducerSnapshotEntry:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    current_transaction_first_offset: int | None
    last_timestamp: int
    # None for a producer of which only a transaction marker is known.
    first_sequence: int | None = None
    last_sequence: int | None = None
    last_offset: int | None = None
    offset_delta: int | None = None
    timestamp: int | None = None


@dataclass
class DumpedFile:
    path: str
    batches: list[DumpedBatch] = field(default_factory=list)
    offset_entries: list[OffsetIndexEntry] = field(default_factory=list)
    time_entries: list[TimeIndexEntry] = field(default_factory=list)
    aborted_transactions: list[AbortedTransactionEntry] = field(default_factory=list)
    producers: list[ProducerSnapshotEntry] = field(default_factory=list)

    @property
    def records(self) -> list[DumpedRecord]:
        return [record for batch in self.batches for record in batch.records]


@dataclass
class Dump:
    files: list[DumpedFile] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def file(self, path: object) -> DumpedFile:
        """The part about one file, named as the dumper was given it."""
        return next(file for file in self.files if file.path == str(path))
