"""Building logs and batches for storage tests."""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import AppendResult, PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.segments.segment_files import segment_path
from headwater.wire.records import (
    Compression,
    ControlType,
    Record,
    decode_records,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)

PARTITION = TopicPartition("topic", 0)
#: Where the log of a test is on a simulated disk.
DIRECTORY = "/data/topic-0"
#: Small enough for a test to have several, of a few index entries each.
SMALL_SEGMENTS = LogConfig(segment_bytes=500, index_interval_bytes=100)
#: A moment, so that timestamps look like timestamps.
NOW_MS = 1_700_000_000_000


def open_log(
    files: FileSystem,
    directory: str,
    config: LogConfig | None = None,
    *,
    is_clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    handle_count: int = 16,
    now_ms: int = NOW_MS,
) -> PartitionLog:
    return LogLoader(
        PARTITION,
        directory,
        config or LogConfig(),
        files,
        HandleCache(files, handle_count),
        now_ms=now_ms,
        is_clean=is_clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    ).load()


def reopened(log: PartitionLog, disk: FaultyDisk, config: LogConfig | None = None) -> PartitionLog:
    """After a clean stop, with a snapshot at the very end."""
    log.close()
    return open_log(
        disk,
        DIRECTORY,
        config,
        is_clean=True,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
    )


def wrote(result: AppendResult) -> tuple[bool, int, int]:
    """Whether an append was a repetition, and its first and last offset."""
    return result.is_duplicate, result.base_offset, result.last_offset


def batch_of(
    *values: bytes | None,
    key: bytes | None = b"key",
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A producer's batch: one record per value, a millisecond apart, offsets from 0."""
    records = [
        Record(number, timestamp + number, key, value) for number, value in enumerate(values)
    ]
    return encode_batch(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def read_records(log: PartitionLog, offset: int, upper_offset: int | None = None) -> list[Record]:
    """Every data record from `offset` on, fetched piece by piece as a consumer would."""
    upper = log.log_end_offset if upper_offset is None else upper_offset
    records: list[Record] = []
    while offset < upper:
        region = log.read(offset, 1, upper_offset=upper, min_one_batch=True).region
        if region is None:
            break
        batch = region.read()
        records += [record for record in decode_records(batch) if record.offset >= offset]
        offset = read_batch_header(batch).next_offset
    return records


def new_disk(seed: int = 0) -> FaultyDisk:
    """A simulated disk with room for a log at `DIRECTORY`."""
    return FaultyDisk(seed, directories=["/data"])


def append(
    log: PartitionLog,
    *values: bytes | None,
    key: bytes | None = b"key",
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
) -> AppendResult:
    """One batch of an ordinary producer."""
    batch = batch_of(*values, key=key, timestamp=timestamp, compression=compression)
    return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=now_ms)


def append_numbered(
    log: PartitionLog,
    sequence: int,
    *values: bytes | None,
    producer_id: int = 7,
    producer_epoch: int = 0,
    transactional: bool = False,
    timestamp: int = NOW_MS,
    leader_epoch: int = 0,
) -> AppendResult:
    """One batch of a producer that numbers its records."""
    batch = batch_of(
        *values,
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=NOW_MS)


def end_transaction(
    log: PartitionLog, producer_id: int, *, commit: bool, producer_epoch: int = 0
) -> AppendResult:
    """The marker that the transaction coordinator writes."""
    marker = encode_end_transaction_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=0,
        timestamp_ms=NOW_MS,
    )
    return log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )


def leader_batch(
    offset: int, *values: bytes | None, timestamp: int = NOW_MS, leader_epoch: int = 0
) -> bytes:
    """A batch as a leader sends it to its followers, with its final offsets."""
    records = [
        Record(offset + number, timestamp, b"key", value) for number, value in enumerate(values)
    ]
    return encode_batch(records, leader_epoch=leader_epoch)


def sized_batch(offset: int, size: int, *, timestamp: int = NOW_MS) -> bytes:
    """A leader's batch of one record that is exactly `size` bytes long."""
    most = size - len(leader_batch(offset, b"", timestamp=timestamp))
    for length in range(most, most - 9, -1):  # Long values make the lengths in front longer.
        batch = leader_batch(offset, b"x" * length, timestamp=timestamp)
        if len(batch) == size:
            return batch
    raise ValueError(f"no batch of one record takes {size} bytes")


def log_of_batches(disk: FaultyDisk, batch_count: int = 18) -> PartitionLog:
    """Batches of one record and 100 bytes: with 18 of them, segments at 0, 5, 10 and 15."""
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    for offset in range(log.log_end_offset, batch_count):
        log.append_as_follower(sized_batch(offset, 100, timestamp=NOW_MS + offset), now_ms=NOW_MS)
    return log


def offsets_of(log: PartitionLog) -> list[int]:
    """The offsets of all records that can be read."""
    return [record.offset for record in read_records(log, log.log_start_offset)]


def path_of(base_offset: int, suffix: str) -> str:
    """Where a file of the test's log is."""
    return segment_path(DIRECTORY, base_offset, suffix)
