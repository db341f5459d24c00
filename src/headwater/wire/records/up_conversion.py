"""Old message sets made into a batch of the current format.

A log is written in one format only, so what an old client sends is converted before it is stored.
"""

from headwater.wire.records import legacy
from headwater.wire.records.batch import encode_batch
from headwater.wire.records.batch_header import LOG_OVERHEAD
from headwater.wire.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compression_of,
)
from headwater.wire.records.record import Buffer, Record
from headwater.wire.records.timestamp_type import TimestampType


def convert_to_v2(
    buffer: Buffer,
    *,
    base_offset: int | None = None,
    compression: Compression | None = None,
    compression_level: int | None = None,
    append_time_ms: int | None = None,
    leader_epoch: int = -1,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
    check_crc: bool = True,
) -> bytes:
    """All messages of the set in `buffer` as one batch of magic 2; nothing gives nothing.

    With a `base_offset` the records get consecutive offsets from there, as a leader assigns them;
    without one they keep theirs. Without a `compression` the batch has that of the first message.
    With an `append_time_ms` that is the time of all records; otherwise they keep theirs, and the
    batch is of log append time if the first message is.
    """
    records: list[Record] = []
    position = 0
    left = max_decompressed_bytes
    timestamp_type = TimestampType.CREATE_TIME
    while position < len(buffer):
        message = legacy.read_message(buffer, position, check_crc=check_crc)
        if not records:
            if compression is None:
                compression = compression_of(message.attributes)
            if message.magic == legacy.MAGIC_V1 and message.is_append_time:
                timestamp_type = TimestampType.LOG_APPEND_TIME
        decoded = legacy.decode_message(
            buffer, position, max_decompressed_bytes=left, check_crc=False
        )
        if compression_of(message.attributes) is not Compression.NONE:
            # The bound is for the whole set: many small wrappers weigh as much as a large one.
            left -= sum([len(record.key or b"") + len(record.value or b"") for record in decoded])
        records += decoded
        position += LOG_OVERHEAD + message.size_bytes
    if not records or compression is None:
        return b""
    if base_offset is not None:
        records = [
            record._replace(offset=base_offset + index) for index, record in enumerate(records)
        ]
    if append_time_ms is not None:
        timestamp_type = TimestampType.LOG_APPEND_TIME
    return encode_batch(
        records,
        compression=compression,
        compression_level=compression_level,
        timestamp_type=timestamp_type,
        max_timestamp=append_time_ms,
        leader_epoch=leader_epoch,
    )
