"""Building logs and batches for storage tests."""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.storage.files import FileSystem
from headwater.storage.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.log_loader import LogLoader
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import (
    Compression,
    Record,
    decode_records,
    encode_batch,
    read_batch_header,
)

PARTITION = TopicPartition("topic", 0)
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
