"""The records of fetched batches as columns: numbers in arrays, keys and values as places in bytes.

The records of many batches are read together, because an array operation costs a microsecond
before it has done anything, and the usual batch has a hundred records. Their sections are joined
into one bytes object, the begin of every record is found (`record_positions`), and then each field
is read for all records at once (`varint_arrays`).

Reading so is fast but tells little about what is wrong. So whatever does not fit, the batches are
read again by `wire.records`, one by one: what that accepts is accepted here, and what it refuses is
refused with its error. Nothing is allocated by a number that the bytes claim: record and header
counts are compared with the bytes that must hold them first.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from headwater.base.errors import KafkaError
from headwater.client.columns.decoded_columns import (
    BatchRun,
    RecordColumns,
    columns_from_records,
)
from headwater.client.columns.header_columns import read_header_columns
from headwater.client.columns.record_positions import BrokenChainError, RecordChain, SectionShape
from headwater.client.columns.varint_arrays import (
    Bytes,
    Longs,
    MalformedNumberError,
    read_sizes,
    read_varints,
    read_varlongs,
    unzigzag,
)
from headwater.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    Compression,
    Record,
    TimestampType,
    decompress,
    validate_batch,
)
from headwater.wire.records.batch_header import TIMESTAMP_TYPE_BIT
from headwater.wire.records.record_section import (
    check_record_count,
    check_section_end,
    read_records,
)

__all__ = ["BatchRun", "RecordColumns", "decode_batches"]

#: Below so many records the plain reader is faster.
ARRAY_RECORDS_MIN: Final = 96
#: No more batches are read together once they have decompressed to this.
_JOINED_BYTES_MAX: Final = 16 << 20


def decode_batches(
    batches: Sequence[tuple[Buffer, BatchHeader]],
    *,
    check_crc: bool = True,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> RecordColumns:
    """The records of as many batches as are good, in their order.

    Raises only if the first one is bad. `batch_count` tells how many were read: whoever gets fewer
    were given uses these and then asks for the rest, to get it or to learn what is wrong with it.
    """
    sections: list[Buffer] = []
    headers: list[BatchHeader] = []
    decoded_bytes = 0
    for batch, header in batches:
        try:
            validate_batch(batch, 0, header, check_crc=check_crc)
            sections.append(_section_of(batch, header, max_decompressed_bytes))
        except KafkaError:
            if not sections:
                raise
            break
        headers.append(header)
        decoded_bytes += len(sections[-1])
        if decoded_bytes >= _JOINED_BYTES_MAX:
            break
    if sum([header.record_count for header in headers]) >= ARRAY_RECORDS_MIN:
        try:
            return _decoded_by_arrays(sections, headers)
        except (BrokenChainError, MalformedNumberError):
            pass
    return _decoded_by_records(sections, headers)


def _section_of(batch: Buffer, header: BatchHeader, max_decompressed_bytes: int) -> Buffer:
    section: Buffer = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    compression = header.compression
    if compression is not Compression.NONE and section:
        section = decompress(compression, section, max_decompressed_bytes)
    check_record_count(header, section)
    return section


def _decoded_by_arrays(sections: list[Buffer], headers: list[BatchHeader]) -> RecordColumns:
    data = bytes(sections[0]) if len(sections) == 1 else b"".join(sections)
    array: Bytes = np.frombuffer(data, np.uint8)
    cursors, ends = _record_bounds(data, array, sections, headers)
    # One byte of attributes, which no record has.
    raw_long, cursors = read_varlongs(array, cursors + 1)
    raw, cursors = read_varints(array, cursors)
    if (raw & 1).any() or (
        raw > _spread(headers, [h.last_offset_delta << 1 for h in headers])
    ).any():
        raise MalformedNumberError
    offsets = _spread(headers, [header.base_offset for header in headers]) + (raw >> 1)
    key_sizes, key_starts = read_sizes(array, cursors)
    value_sizes, value_starts = read_sizes(array, key_starts + np.maximum(key_sizes, 0))
    cursors = value_starts + np.maximum(value_sizes, 0)
    header_columns = None
    if array.take(cursors, mode="clip").any():
        header_columns, cursors = read_header_columns(data, array, cursors, ends)
    else:
        cursors += 1
    # Fields only ever lead forward, so one that led out of its record is found here.
    if (cursors != ends).any():
        raise MalformedNumberError
    return RecordColumns(
        data,
        offsets,
        _timestamps(headers, raw_long),
        key_starts,
        key_sizes,
        value_starts,
        value_sizes,
        header_columns,
        _runs(headers),
        len(headers),
    )


def _record_bounds(
    data: bytes, array: Bytes, sections: list[Buffer], headers: list[BatchHeader]
) -> tuple[Longs, Longs]:
    """Where the fields of each record begin, after its length, and where they must end."""
    chain = RecordChain(data, array)
    shapes = [
        SectionShape(len(section), header.record_count)
        for section, header in zip(sections, headers, strict=True)
    ]
    for is_guessing in (True, False):
        ends = chain.ends(shapes, is_guessing=is_guessing)
        # One record begins where the one before it ends, whichever batch that is in.
        begins = np.empty_like(ends)
        begins[:1] = 0
        begins[1:] = ends[:-1]
        raw, cursors = read_varints(array, begins)
        if not (raw & 1).any() and (cursors + (raw >> 1) == ends).all():
            return cursors, ends
    raise MalformedNumberError


def _spread(headers: list[BatchHeader], numbers: list[int]) -> Longs:
    """A number of each batch for each of its records, or the one number for all."""
    each = np.array(numbers, np.int64)
    return each if len(headers) == 1 else np.repeat(each, [h.record_count for h in headers])


def _timestamps(headers: list[BatchHeader], raw: npt.NDArray[np.uint64]) -> Longs:
    # Array arithmetic wraps around as Java's does.
    timestamps = _spread(headers, [header.base_timestamp for header in headers]) + unzigzag(raw)
    if any(header.attributes & TIMESTAMP_TYPE_BIT for header in headers):
        first = 0
        for header in headers:
            if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
                timestamps[first : first + header.record_count] = header.max_timestamp
            first += header.record_count
    return timestamps


def _runs(headers: list[BatchHeader]) -> tuple[BatchRun, ...]:
    return tuple([BatchRun(h.record_count, h.timestamp_type, h.leader_epoch) for h in headers])


def _decoded_by_records(sections: list[Buffer], headers: list[BatchHeader]) -> RecordColumns:
    records: list[Record] = []
    batch_count = 0
    for section, header in zip(sections, headers, strict=True):
        try:
            data = bytes(section)
            read, end = read_records(data, 0, header.record_count, header)
            check_section_end(header, data, end)
        except KafkaError:
            if not batch_count:
                raise
            break
        records += read
        batch_count += 1
    return columns_from_records(records, _runs(headers[:batch_count]), batch_count)
