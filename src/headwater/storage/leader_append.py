"""What a leader does to batches before they are written: check them, then give them their place.

The common case looks at batch headers only: lengths, checksum, sizes, counts, timestamps, and then
patches offset and leader epoch in place, which no checksum covers. Records are looked into only
where there is no other way: when a compacted topic must refuse null keys, when the topic asks for
another compression than the producer used, and when old bounds on timestamps are set.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.storage.errors import (
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from headwater.storage.log_config import TIMESTAMP_UNBOUNDED_MS, LogConfig
from headwater.storage.producer_entry import AppendOrigin
from headwater.wire.records import (
    BatchHeader,
    Buffer,
    InvalidRecordError,
    TimestampType,
    decode_batch,
    patch_batch,
    patch_create_time,
    patch_log_append_time,
    read_batch_header,
    recompress_batch,
    validate_batch,
)
from headwater.wire.records.batch_header import TIMESTAMP_TYPE_BIT

#: Looking into fewer bytes of records than this takes less time than handing them to a thread.
INSPECTED_INLINE_BYTES_MAX = 16 << 10


class PreparedBatches(NamedTuple):
    """Batches that a log may take, in the topic's own compression."""

    data: Buffer
    headers: list[BatchHeader]


def prepare_batches(
    data: Buffer, config: LogConfig, now_ms: int, origin: AppendOrigin
) -> PreparedBatches:
    """All of an append that needs no log: check batches, and compress them anew if need be.

    It may run in any thread. Where records are looked into it takes its time, see
    `LogConfig.inspects_records`; otherwise it is a matter of microseconds.
    """
    headers = check_batches(data, config, now_ms, origin)
    if config.compression is not None and headers:
        data, headers = recompress(data, headers, config, origin)
    return PreparedBatches(data, headers)


def check_batches(
    data: Buffer, config: LogConfig, now_ms: int, origin: AppendOrigin
) -> list[BatchHeader]:
    """The headers of `data`, each acceptable to this log; else an error says why."""
    headers: list[BatchHeader] = []
    position = 0
    while position < len(data):
        header = read_batch_header(data, position)
        validate_batch(data, position, header)
        if origin is AppendOrigin.CLIENT:
            _check_client_header(header, first=not headers)
        if config.message_timestamp_type is TimestampType.CREATE_TIME:
            _check_timestamps(data, position, header, config, now_ms)
        if config.is_compacted and not header.is_control:
            _check_keys(data, position, header)
        headers.append(header)
        position += header.size_bytes
    _check_sizes(headers, config, origin)
    return headers


def _check_sizes(headers: list[BatchHeader], config: LogConfig, origin: AppendOrigin) -> None:
    size_bytes = 0
    for header in headers:
        size_bytes += header.size_bytes
        if header.size_bytes > config.max_message_bytes and origin is AppendOrigin.CLIENT:
            raise RecordTooLargeError(
                f"The batch of {header.size_bytes} bytes is larger than "
                f"max.message.bytes={config.max_message_bytes}."
            )
    if size_bytes > config.segment_bytes:
        raise RecordBatchTooLargeError(
            f"The append of {size_bytes} bytes does not fit a segment of {config.segment_bytes}."
        )


def _check_client_header(header: BatchHeader, *, first: bool) -> None:
    if header.base_offset != 0 and first:
        raise InvalidRecordError(
            f"A producer's batch must start at offset 0, this one starts at {header.base_offset}."
        )
    if header.is_control:
        raise InvalidRecordError("Clients may not write control records.")
    if header.delete_horizon_ms is not None:
        raise InvalidRecordError("Only compaction gives a batch a delete horizon.")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecordError(
            f"The batch claims {header.record_count} records "
            f"but its offsets span {header.last_offset_delta + 1}."
        )
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecordError(
            f"The batch of producer {header.producer_id} has sequence {header.base_sequence}."
        )


def _check_timestamps(
    data: Buffer, position: int, header: BatchHeader, config: LogConfig, now_ms: int
) -> None:
    after_max_ms = config.message_timestamp_after_max_ms
    if header.max_timestamp - now_ms > after_max_ms:
        raise InvalidTimestampError(
            f"Timestamp {header.max_timestamp} lies more than message.timestamp.after.max.ms="
            f"{after_max_ms} ahead of {now_ms}.",
            record_numbers=_numbers_behind(data, position, now_ms + after_max_ms),
        )
    before_max_ms = config.message_timestamp_before_max_ms
    if before_max_ms == TIMESTAMP_UNBOUNDED_MS:
        return
    # Only the largest timestamp stands in the header, so an oldest allowed one costs a decode.
    too_old = [
        (number, record.timestamp)
        for number, record in enumerate(decode_batch(data, position))
        if record.timestamp >= 0 and now_ms - record.timestamp > before_max_ms
    ]
    if too_old:
        raise InvalidTimestampError(
            f"Timestamp {too_old[0][1]} lies more than "
            f"message.timestamp.before.max.ms={before_max_ms} behind {now_ms}.",
            record_numbers=tuple(number for number, _ in too_old),
        )


def _numbers_behind(data: Buffer, position: int, latest_ms: int) -> tuple[int, ...]:
    """Which records of a batch have a later time; nothing, if the batch cannot be read."""
    try:
        records = decode_batch(data, position)
    except KafkaError:
        return ()
    return tuple(number for number, each in enumerate(records) if each.timestamp > latest_ms)


def _check_keys(data: Buffer, position: int, header: BatchHeader) -> None:
    keyless = [
        number for number, record in enumerate(decode_batch(data, position)) if record.key is None
    ]
    if keyless:
        raise InvalidRecordError(
            f"A compacted topic takes no record without a key: {len(keyless)} of the batch's "
            f"{header.record_count} have none.",
            record_numbers=tuple(keyless),
        )


def recompress(
    data: Buffer, headers: list[BatchHeader], config: LogConfig, origin: AppendOrigin
) -> tuple[Buffer, list[BatchHeader]]:
    """The same records in the topic's own compression, but for transaction markers."""
    wanted = config.compression
    if wanted is None or all(h.compression is wanted or h.is_control for h in headers):
        return data, headers
    batches = []
    position = 0
    for header in headers:
        if header.compression is wanted or header.is_control:
            batches.append(bytes(data[position : position + header.size_bytes]))
        else:
            batches.append(
                recompress_batch(
                    data, position, header, wanted, compression_level=config.compression_level
                )
            )
        position += header.size_bytes
    headers = [read_batch_header(batch) for batch in batches]
    _check_sizes(headers, config, origin)  # Records may take more room in another codec.
    return bytearray(b"".join(batches)), headers


def assign_offsets(
    data: bytearray | memoryview,
    headers: list[BatchHeader],
    first_offset: int,
    leader_epoch: int,
    config: LogConfig,
    now_ms: int,
) -> list[BatchHeader]:
    """Patch every batch with its offset and epoch, and its append time where the topic says so."""
    assigned = []
    position = 0
    offset = first_offset
    append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    for header in headers:
        patch_batch(data, position, base_offset=offset, leader_epoch=leader_epoch)
        if append_time and not header.is_control:
            patch_log_append_time(data, position, header, now_ms)
            header = read_batch_header(data, position)
        elif header.attributes & TIMESTAMP_TYPE_BIT:
            # Its producer claims what only a broker decides.
            patch_create_time(data, position, header)
            header = read_batch_header(data, position)
        else:
            # Cheaper than reading what was just written: the other fields stay.
            header = BatchHeader(offset, header[1], leader_epoch, *header[3:])
        assigned.append(header)
        position += header.size_bytes
        offset = header.next_offset
    return assigned
