"""The records of fetched batches as columns: numbers in arrays, keys and values as places in bytes.

The records of many batches are read together, all at once (`section_columns`). Reading so is fast
but tells little about what is wrong. So whatever does not fit, the batches are read again by
`wire.records`, one by one: what that accepts is accepted here, and what it refuses is refused with
its error. Nothing is allocated by a number that the bytes claim: record and header counts are
compared with the bytes that must hold them first.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding.batch_table import table_of_headers
from headwater.client.columns.decoding.decoded_columns import (
    BatchRun,
    RecordColumns,
    columns_from_records,
)
from headwater.client.columns.decoding.record_positions import BrokenChainError
from headwater.client.columns.decoding.section_columns import read_sections
from headwater.client.columns.varint_arrays import MalformedNumberError
from headwater.client.fetch.corrupt_batches import check_offsets_grow
from headwater.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    Compression,
    Record,
    decompress,
    validate_batch,
)
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
    with_headers: bool = True,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> RecordColumns:
    """The records of as many batches as are good, in their order, with their headers or without.

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
            return _decoded_by_arrays(sections, headers, with_headers)
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


def _decoded_by_arrays(
    sections: list[Buffer], headers: list[BatchHeader], with_headers: bool
) -> RecordColumns:
    data = bytes(sections[0]) if len(sections) == 1 else b"".join(sections)
    sizes = np.array([len(section) for section in sections], np.int64)
    table = table_of_headers(headers)
    return read_sections(data, np.cumsum(sizes) - sizes, sizes, table, with_headers=with_headers)


def _decoded_by_records(sections: list[Buffer], headers: list[BatchHeader]) -> RecordColumns:
    records: list[Record] = []
    batch_count = 0
    for section, header in zip(sections, headers, strict=True):
        try:
            data = bytes(section)
            read, end = read_records(data, 0, header.record_count, header)
            check_section_end(header, data, end)
            check_offsets_grow(read)
        except KafkaError:
            if not batch_count:
                raise
            break
        records += read
        batch_count += 1
    runs = tuple([BatchRun(h.record_count, h.timestamp_type, h.leader_epoch) for h in headers])
    return columns_from_records(records, runs[:batch_count], batch_count)
