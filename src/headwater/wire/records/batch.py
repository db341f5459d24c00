"""Whole batches: records to bytes and back.

Encoding makes magic 2, the only format that is still written. Decoding takes any format that stands
at the position: an old message counts as a batch of one record, or of those that it wraps. Every
reader checks the CRC unless told not to, and raises only the errors of `errors`, whatever the
bytes are.
"""

import struct
from collections.abc import Iterator, Sequence

from headwater.wire.records import legacy
from headwater.wire.records.batch_header import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_batch_header,
    validate_batch,
    write_crc,
)
from headwater.wire.records.compression import (
    COMPRESSION_MASK,
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    decompress,
)
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import NO_TIMESTAMP, Buffer, Record
from headwater.wire.records.record_section import (
    check_record_count,
    check_section_end,
    encode_section,
    read_records,
    section_records,
)
from headwater.wire.records.timestamp_type import TimestampType


def encode_batch(
    records: Sequence[Record],
    *,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
    delete_horizon_ms: int | None = None,
    max_timestamp: int | None = None,
    compression_level: int | None = None,
) -> bytes:
    """One batch of magic 2.

    Offsets come from the records unless given: compaction gives both, to keep the range of a batch
    whose ends it removed. Without records they must be given, and the result is the bare header
    that stays in a log so that its producer's sequence is remembered.
    """
    if records:
        first_offset = records[0].offset if base_offset is None else base_offset
        base_timestamp = records[0].timestamp
        if max_timestamp is None:
            max_timestamp = max([record.timestamp for record in records])
        span = records[-1].offset - first_offset
        last_offset_delta = span if last_offset_delta is None else last_offset_delta
        if span > last_offset_delta:
            raise InvalidRecordError(
                f"The last record is {span} offsets after the base, "
                f"but the batch is to end {last_offset_delta} after it."
            )
    elif base_offset is None or last_offset_delta is None:
        raise InvalidRecordError("A batch without records needs its offsets given.")
    else:
        first_offset = base_offset
        max_timestamp = NO_TIMESTAMP if max_timestamp is None else max_timestamp
        base_timestamp = max_timestamp
        compression = Compression.NONE
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    if first_offset < 0 or last_offset_delta < 0:
        raise InvalidRecordError(
            f"A batch cannot span {last_offset_delta + 1} offsets from {first_offset} on."
        )
    section = encode_section(records, first_offset, base_timestamp)
    if compression is not Compression.NONE:
        section = compress(compression, section, compression_level)
    attributes = (
        compression
        | (TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
    )
    header = BatchHeader(
        base_offset=first_offset,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section),
        leader_epoch=leader_epoch,
        magic=MAGIC_V2,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return assemble_batch(header, section)


def decode_batch(
    buffer: Buffer,
    position: int = 0,
    *,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
    check_crc: bool = True,
) -> list[Record]:
    """The records of the one batch at `position`, whatever its format."""
    if _magic_at(buffer, position) < MAGIC_V2:
        return legacy.decode_message(
            buffer, position, max_decompressed_bytes=max_decompressed_bytes, check_crc=check_crc
        )
    header = read_batch_header(buffer, position)
    validate_batch(buffer, position, header, check_crc=check_crc)
    data = read_section(buffer, position, header, max_decompressed_bytes)
    records, section_end = read_records(data, 0, header.record_count, header)
    check_section_end(header, data, section_end)
    return records


def decode_records(
    buffer: Buffer,
    *,
    start: int = 0,
    end: int | None = None,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
    check_crc: bool = True,
) -> Iterator[Record]:
    """All records of all batches, made while they are asked for."""
    view = memoryview(buffer)[: len(buffer) if end is None else end]
    position = start
    while position < len(view):
        if _magic_at(view, position) < MAGIC_V2:
            yield from legacy.decode_message(
                view, position, max_decompressed_bytes=max_decompressed_bytes, check_crc=check_crc
            )
            position += LOG_OVERHEAD + legacy.read_message_size(view, position)
            continue
        header = read_batch_header(view, position)
        validate_batch(view, position, header, check_crc=check_crc)
        data = read_section(view, position, header, max_decompressed_bytes)
        yield from section_records(data, header)
        position += header.size_bytes


def read_section(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """The records of a batch of magic 2 as bytes, decompressed."""
    section = memoryview(buffer)[position + HEADER_SIZE : position + header.size_bytes]
    compression = header.compression
    if compression is Compression.NONE or not section:
        data = bytes(section)
    else:
        data = decompress(compression, section, max_decompressed_bytes)
    check_record_count(header, data)
    return data


def recompress_batch(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    compression: Compression,
    *,
    compression_level: int | None = None,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """The batch with the same records, byte for byte, in another codec.

    Records are relative to their header, so they need not be looked at for this.
    """
    section = read_section(buffer, position, header, max_decompressed_bytes)
    if header.record_count == 0:
        compression = Compression.NONE
    if compression is not Compression.NONE:
        section = compress(compression, section, compression_level)
    return assemble_batch(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section),
            attributes=header.attributes & ~COMPRESSION_MASK | compression,
        ),
        section,
    )


def assemble_batch(header: BatchHeader, section: bytes) -> bytes:
    """A batch of a header, whose checksum does not count, and its records as they are stored."""
    batch = bytearray(HEADER_SIZE + len(section))
    try:
        HEADER_STRUCT.pack_into(batch, 0, *header)
    except struct.error as error:
        raise InvalidRecordError(f"A field does not fit the batch header: {error}.") from None
    batch[HEADER_SIZE:] = section
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def _magic_at(buffer: Buffer, position: int) -> int:
    if len(buffer) - position <= MAGIC_POSITION:
        raise CorruptRecordError(
            f"No batch fits the {max(0, len(buffer) - position)} bytes at position {position}."
        )
    return buffer[position + MAGIC_POSITION]
