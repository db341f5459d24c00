"""Records as stretches of bytes: what compaction needs to know of them, and batches made of some.

Compaction reads every record of a log and drops some, but makes none and changes none. So it does
not decode them: it finds where each begins and ends, its offset, its key and whether it has a
value. The records of a batch are relative to its header, so those that stay are copied as they are,
and a batch that lost records is its old header with new counts before the stretches that are left.

This holds as long as the batch's base timestamp stays. When the delete horizon takes its place,
every record has another delta, and the batch is decoded and encoded the ordinary way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    TimestampType,
    compress,
    decompress,
)
from headwater.wire.records.batch_header import (
    DELETE_HORIZON_BIT,
    HEADER_STRUCT,
    RECORD_SIZE_MIN,
    write_crc,
)
from headwater.wire.records.compression import COMPRESSION_MASK
from headwater.wire.records.varint import VARLONG_BYTES_MAX, read_raw_varint, unzigzag

_RAW_NULL = 1
_LONG_MODULUS = 1 << 64
_LONG_MIN = -(1 << 63)


#: Start and end of a record among its batch's decompressed records, its offset, its key, and
#: whether it has a value. A plain tuple, since making anything else takes longer than all the rest.
RecordSlice: TypeAlias = tuple[int, int, int, bytes | None, bool]


def read_section(data: Buffer, header: BatchHeader) -> bytes:
    """The records of the batch that `data` holds, decompressed."""
    section = memoryview(data)[HEADER_SIZE : header.size_bytes]
    compression = header.compression
    if compression is Compression.NONE or not section:
        return bytes(section)
    return decompress(compression, section)


def slice_records(section: bytes, header: BatchHeader) -> list[RecordSlice]:
    """Every record of a batch, which must fill the section exactly."""
    if not 0 <= header.record_count * RECORD_SIZE_MIN <= len(section):
        raise InvalidRecordError(
            f"The batch at offset {header.base_offset} claims {header.record_count} records in "
            f"{len(section)} bytes."
        )
    try:
        slices = _slice(section, header)
    except IndexError:
        slices = []
    end = slices[-1][1] if slices else 0
    if end != len(section) or len(slices) != header.record_count:
        raise CorruptRecordError(
            f"The records of the batch at offset {header.base_offset} do not fill their "
            f"{len(section)} bytes."
        )
    return slices


def _slice(data: bytes, header: BatchHeader) -> list[RecordSlice]:
    """The loop that every record of a log passes through, hence flat: see `record_section`."""
    slices: list[RecordSlice] = []
    append = slices.append
    base_offset = header.base_offset
    raw_delta_max = header.last_offset_delta << 1
    end = 0
    for _ in range(header.record_count):
        start = position = end
        # The record's length.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        end = position + (raw >> 1)
        if raw & 1:
            raise _invalid(header, start)
        # A byte of attributes, and the timestamp's delta.
        position += 1
        while data[position] >= 0x80:
            position += 1
        position += 1
        # The offset's delta.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        if raw & 1 or raw > raw_delta_max:
            raise _invalid(header, start)
        offset = base_offset + (raw >> 1)
        # The key.
        raw = data[position]
        position += 1
        if raw >= 0x80:
            raw, position = read_raw_varint(data, position - 1)
        if not raw & 1:
            key_start = position
            position += raw >> 1
            key = data[key_start:position]
        elif raw == _RAW_NULL:
            key = None
        else:
            raise _invalid(header, start)
        if position >= end:
            raise _invalid(header, start)
        # Of the value only whether its length is that of null.
        append((start, end, offset, key, data[position] != _RAW_NULL))
    return slices


def _invalid(header: BatchHeader, position: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"The record at byte {position} of the batch at offset {header.base_offset} is malformed."
    )


def batch_of_slices(header: BatchHeader, section: bytes, kept: Sequence[RecordSlice]) -> bytes:
    """The batch with no other records than these, of which there is at least one."""
    records = b"".join([section[start:end] for start, end, _, _, _ in kept])
    compression = header.compression
    if compression is not Compression.NONE:
        records = compress(compression, records)
    max_timestamp = header.max_timestamp
    if header.timestamp_type is TimestampType.CREATE_TIME:
        max_timestamp = max([_timestamp(section, start, header) for start, _, _, _, _ in kept])
    return _assemble(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
            max_timestamp=max_timestamp,
            record_count=len(kept),
        ),
        records,
    )


def batch_without_records(header: BatchHeader) -> bytes:
    """The bare header that stays of a batch whose range or producer must be remembered."""
    return _assemble(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD,
            attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT),
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )


def _assemble(header: BatchHeader, records: bytes) -> bytes:
    batch = bytearray(HEADER_SIZE + len(records))
    HEADER_STRUCT.pack_into(batch, 0, *header)
    batch[HEADER_SIZE:] = records
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def _timestamp(section: bytes, start: int, header: BatchHeader) -> int:
    _, position = read_raw_varint(section, start)
    raw, _ = read_raw_varint(section, position + 1, VARLONG_BYTES_MAX)
    timestamp = header.base_timestamp + unzigzag(raw)
    # What does not fit 64 bits overflows, as it does for every reader.
    return (timestamp - _LONG_MIN) % _LONG_MODULUS + _LONG_MIN
