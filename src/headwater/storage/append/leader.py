"""What a leader does to batches before they are written: check them, then give them their place.

A batch's header must agree with itself (lengths, checksum, sizes, counts), and its records with it
as far as `records.validation` says: see `record_checks`. Then offset and leader epoch are patched
in place, which no checksum covers. Records are decompressed only where there is no other way: when
a compacted topic must refuse null keys, when the topic asks for another compression than the
producer used, when a bound on old timestamps is set, and when the topic wants them looked into.
What a client's records decompress to is bounded by `max.decompressed.message.bytes`.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.storage.append.delaying import delay_batch
from headwater.storage.append.record_checks import check_records
from headwater.storage.errors import RecordBatchTooLargeError, RecordTooLargeError
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    BatchHeader,
    Buffer,
    Compression,
    InvalidRecordError,
    TimestampType,
    patch_batch,
    patch_create_time,
    patch_log_append_time,
    patch_max_timestamp,
    read_batch_header,
    recompress_batch,
    validate_batch,
)
from headwater.wire.records.batch_header import RECORD_SIZE_MIN, TIMESTAMP_TYPE_BIT

#: Looking into fewer bytes of records than this takes less time than handing them to a thread.
INSPECTED_INLINE_BYTES_MAX = 16 << 10
#: The same for what compressed ones turn out to be.
DECOMPRESSED_INLINE_BYTES_MAX = 64 << 10
#: So many records of no common layout are walked within some milliseconds.
WALKED_INLINE_RECORDS_MAX = 16 << 10


class PreparedBatches(NamedTuple):
    """Batches that a log may take, in the topic's own compression."""

    data: Buffer
    headers: list[BatchHeader]


def prepare_batches(
    data: Buffer,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin,
    partition: TopicPartition,
    *,
    max_decompressed_bytes: int | None = None,
) -> PreparedBatches:
    """All of an append that needs no log: check batches, and compress them anew if need be.

    It may run in any thread. Where records are looked into it takes its time, see
    `LogConfig.inspects_records`; otherwise it is a matter of microseconds. Records that take more
    than `max_decompressed_bytes`, or what the topic allows, raise `DecompressedTooLargeError`.
    """
    # The topic's bound is for clients: a coordinator compresses no more than it has itself.
    is_client = origin is AppendOrigin.CLIENT
    allowed = config.max_decompressed_message_bytes if is_client else DECOMPRESSED_BYTES_MAX
    if max_decompressed_bytes is not None:
        allowed = min(allowed, max_decompressed_bytes)
    batches = check_batches(data, config, now_ms, origin, allowed)
    if config.delays_records and is_client:
        batches = _delay(batches, config, now_ms, allowed, partition)
    if config.compression is not None and batches.headers:
        return recompress(batches, config, origin, allowed)
    return batches


def _delay(
    batches: PreparedBatches,
    config: LogConfig,
    now_ms: int,
    max_decompressed_bytes: int,
    partition: TopicPartition,
) -> PreparedBatches:
    """The same, or delayed if its records ask for it; a client's append has one batch."""
    data, headers = batches
    if len(headers) != 1:
        return batches
    delayed = delay_batch(data, 0, headers[0], config, now_ms, max_decompressed_bytes, partition)
    if delayed is None:
        return batches
    return PreparedBatches(bytearray(delayed), [read_batch_header(delayed)])


def takes_long(data: Buffer, config: LogConfig) -> bool:
    """Whether a thread had better prepare the batches, as far as their size tells."""
    if config.inspects_records:
        return len(data) > INSPECTED_INLINE_BYTES_MAX
    if len(data) <= WALKED_INLINE_RECORDS_MAX * RECORD_SIZE_MIN or not config.walks_records:
        return False
    header = read_batch_header(data)
    return header.compression is Compression.NONE and (
        header.record_count > WALKED_INLINE_RECORDS_MAX
    )


def check_batches(
    data: Buffer,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin,
    max_decompressed_bytes: int,
) -> PreparedBatches:
    """The batches of `data`, each acceptable to this log; else an error says why.

    A header that gives its records a wrong time is corrected: in place, if `data` can be changed.
    """
    headers: list[BatchHeader] = []
    position = 0
    corrects_times = config.message_timestamp_type is TimestampType.CREATE_TIME
    while position < len(data):
        header = read_batch_header(data, position)
        validate_batch(data, position, header)
        if origin is AppendOrigin.CLIENT:
            _check_client_header(header, first=not headers)
        if header.producer_id == DELIVERY_PRODUCER_ID:
            latest = header.max_timestamp  # A broker's own, with the time at which it was due.
        else:
            latest = check_records(data, position, header, config, now_ms, max_decompressed_bytes)
        if corrects_times and latest != header.max_timestamp:
            data = changeable(data)
            patch_max_timestamp(data, position, header, latest)
            header = read_batch_header(data, position)
        headers.append(header)
        position += header.size_bytes
    _check_sizes(headers, config, origin)
    return PreparedBatches(data, headers)


def changeable(data: Buffer) -> bytearray | memoryview:
    """The same bytes, or a copy if they are somebody's for good."""
    if isinstance(data, bytes) or (isinstance(data, memoryview) and data.readonly):
        return bytearray(data)
    return data


def _check_sizes(headers: list[BatchHeader], config: LogConfig, origin: AppendOrigin) -> None:
    size_bytes = 0
    for header in headers:
        size_bytes += header.size_bytes
        if header.size_bytes > config.max_message_bytes and origin is AppendOrigin.CLIENT:
            raise RecordTooLargeError(
                f"The batch of {header.size_bytes} bytes is larger than "
                f"max.message.bytes={config.max_message_bytes}."
            )
    # A copy is a little larger than what it is a copy of, which was taken; it must not be held up.
    is_copy = bool(headers) and headers[0].producer_id == DELIVERY_PRODUCER_ID
    if size_bytes > config.segment_bytes and not is_copy:
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
    if header.producer_id == DELIVERY_PRODUCER_ID:
        raise InvalidRecordError(
            f"No client has the producer id {header.producer_id}: delayed messages are delivered "
            "under it."
        )
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecordError(
            f"The batch of producer {header.producer_id} has sequence {header.base_sequence}."
        )


def recompress(
    prepared: PreparedBatches,
    config: LogConfig,
    origin: AppendOrigin,
    max_decompressed_bytes: int,
) -> PreparedBatches:
    """The same records in the topic's own compression, but for transaction markers."""
    data, headers = prepared
    wanted = config.compression
    if wanted is None or all(h.compression is wanted or h.is_control for h in headers):
        return prepared
    batches = []
    position = 0
    for header in headers:
        if header.compression is wanted or header.is_control:
            batches.append(bytes(data[position : position + header.size_bytes]))
        else:
            batches.append(
                recompress_batch(
                    data,
                    position,
                    header,
                    wanted,
                    compression_level=config.compression_level,
                    max_decompressed_bytes=max_decompressed_bytes,
                )
            )
        position += header.size_bytes
    headers = [read_batch_header(batch) for batch in batches]
    _check_sizes(headers, config, origin)  # Records may take more room in another codec.
    return PreparedBatches(bytearray(b"".join(batches)), headers)


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
        if append_time and not header.is_control and header.producer_id != DELIVERY_PRODUCER_ID:
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
