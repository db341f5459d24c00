"""A fetched partition's records as columns, many batches at a time, from the bytes as they came.

What the batches have in their headers is looked at for all of them together (`batch_table`), and
the records of batches that are not compressed are read where they are: nothing is copied until
somebody makes something of the columns. Batches in a compressed group are decompressed and joined.

This is the short way for the usual case. Wherever it does not apply (old formats, damage), the
batches concerned go through `record_columns`, which knows all cases and all errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from crc32c import crc32c

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding.batch_table import BatchTable, read_batch_table
from headwater.client.columns.decoding.decoded_columns import (
    BatchRun,
    RecordColumns,
    columns_from_records,
)
from headwater.client.columns.decoding.record_columns import ARRAY_RECORDS_MIN, decode_batches
from headwater.client.columns.decoding.record_positions import BrokenChainError
from headwater.client.columns.decoding.section_columns import read_sections
from headwater.client.columns.varint_arrays import Bytes, Longs, MalformedNumberError
from headwater.client.fetch.corrupt_batches import CorruptBatches
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.wire.records import (
    DECOMPRESSED_BYTES_MAX,
    HEADER_SIZE,
    Buffer,
    Compression,
    TimestampType,
    decode_batch,
    decompress,
    read_batch_header,
)
from headwater.wire.records.batch_header import ATTRIBUTES_POSITION, CONTROL_BIT, RECORD_SIZE_MIN
from headwater.wire.records.compression import compression_of

#: So much is read together: enough to make little of what an array operation costs.
GROUP_RECORDS: Final = 1 << 15
GROUP_BYTES: Final = 8 << 20
#: No more batches are read together once they have decompressed to this.
DECOMPRESSED_GROUP_BYTES: Final = 16 << 20


class FoundBatches(NamedTuple):
    """Batches with data to be seen, and where they stand."""

    begins: Longs
    ends: Longs
    table: BatchTable

    def rows(self, chosen: slice | Longs) -> FoundBatches:
        return FoundBatches(self.begins[chosen], self.ends[chosen], self.table.rows(chosen))


def decode_fetched(
    fetched: FetchedPartition,
    start_offset: int,
    *,
    check_crc: bool = True,
    with_headers: bool = True,
    corrupt: CorruptBatches | None = None,
) -> Iterator[RecordColumns]:
    """All records from that offset on, in groups; none of them is empty.

    Control batches and what was aborted are left out. A batch that cannot be read is told to
    `corrupt` when all records before it have been given out, or raised.
    """
    damage = _Damage(fetched, start_offset, corrupt or CorruptBatches())
    view = memoryview(fetched.buffer)
    batches = _visible(fetched, np.frombuffer(view, np.uint8))
    if batches is None:
        groups = _one_by_one(fetched, damage, check_crc, with_headers)
    else:
        skipped = _skipped_count(batches.table, start_offset)
        wanted = batches.rows(slice(skipped, None))
        groups = _grouped(view, wanted, damage, check_crc, with_headers)
    for columns in groups:
        left = columns.from_offset(start_offset)
        if len(left):
            yield left


class _Damage(NamedTuple):
    """Where batches that cannot be read are told."""

    fetched: FetchedPartition
    start_offset: int
    corrupt: CorruptBatches

    def met(self, begin: int, end: int, cause: KafkaError) -> None:
        next_offset = self.fetched.offset_after(begin, end)
        if next_offset > self.start_offset:
            first_offset = self.fetched.first_offset_at(begin)
            self.corrupt.met(self.fetched.topic_partition, first_offset, next_offset, cause)


def _visible(fetched: FetchedPartition, array: Bytes) -> FoundBatches | None:
    """None if a batch is old or has no header."""
    ends = np.array(fetched.batch_ends, np.int64)
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    table = read_batch_table(array, begins, ends - begins)
    if table is None:
        return None
    if not fetched.has_aborted:
        is_data = table.attributes & CONTROL_BIT == 0
        if is_data.all():
            return FoundBatches(begins, ends, table)
        chosen = np.flatnonzero(is_data)
    else:
        visible = [begin for begin, _, _ in fetched.visible_batches()]
        chosen = np.searchsorted(begins, np.array(visible, np.int64))
    return FoundBatches(begins, ends, table).rows(chosen)


def _skipped_count(table: BatchTable, start_offset: int) -> int:
    """How many batches at the begin end before that offset; one that makes no sense does not."""
    base_offsets, deltas = table.base_offsets, table.last_offset_deltas
    is_before = (base_offsets < start_offset - deltas) & (base_offsets >= 0) & (deltas >= 0)
    return len(is_before) if is_before.all() else int(is_before.argmin())


def _grouped(
    view: memoryview, batches: FoundBatches, damage: _Damage, check_crc: bool, with_headers: bool
) -> Iterator[RecordColumns]:
    begins, ends, table = batches
    counts = np.cumsum(table.record_counts)
    first = 0
    while first < len(begins):
        used_count = int(counts[first - 1]) if first else 0
        last = min(
            int(np.searchsorted(counts, used_count + GROUP_RECORDS, side="right")),
            int(np.searchsorted(ends, int(begins[first]) + GROUP_BYTES, side="right")),
        )
        last = max(last, first + 1)
        group = batches.rows(slice(first, last))
        columns = read_found(view, group, check_crc, with_headers)
        if columns is None:
            # Something is wrong, or there is little to read.
            try:
                columns = _decoded_plainly(view, group, check_crc, with_headers)
            except KafkaError as error:
                damage.met(int(begins[first]), int(ends[first]), error)
                first += 1
                continue
        yield columns
        first += columns.batch_count


def read_found(
    view: memoryview, batches: FoundBatches, check_crc: bool = True, with_headers: bool = True
) -> RecordColumns | None:
    """The records of the first batches, as many as are worth it; None if one is not as usual."""
    begins, ends, table = batches
    if table.record_counts.sum() < ARRAY_RECORDS_MIN or not table.are_sound(ends - begins):
        return None
    if check_crc and not _have_right_crc(view, batches):
        return None
    try:
        if not table.compressions.any():
            starts = begins + HEADER_SIZE
            base = int(starts[0])
            data: Buffer = view[base : int(ends[-1])]
            return read_sections(
                data, starts - base, ends - starts, table, with_headers=with_headers
            )
        sections = _decompressed(view, batches)
        table = table.rows(slice(len(sections)))
        sizes = np.array([len(section) for section in sections], np.int64)
        if (sizes < table.record_counts * RECORD_SIZE_MIN).any():
            return None
        return read_sections(
            b"".join(sections), np.cumsum(sizes) - sizes, sizes, table, with_headers=with_headers
        )
    except (BrokenChainError, MalformedNumberError, KafkaError):
        return None


def _have_right_crc(view: memoryview, batches: FoundBatches) -> bool:
    starts = (batches.begins + ATTRIBUTES_POSITION).tolist()
    computed = [
        crc32c(view[start:end]) for start, end in zip(starts, batches.ends.tolist(), strict=True)
    ]
    expected: list[int] = batches.table.crcs.tolist()
    return computed == expected


def _decompressed(view: memoryview, batches: FoundBatches) -> list[Buffer]:
    """The records of the first batches, as many as have room together."""
    sections: list[Buffer] = []
    left_bytes = DECOMPRESSED_GROUP_BYTES
    for begin, end, code in zip(
        batches.begins.tolist(),
        batches.ends.tolist(),
        batches.table.compressions.tolist(),
        strict=True,
    ):
        section: Buffer = view[begin + HEADER_SIZE : end]
        compression = compression_of(code)
        if compression is not Compression.NONE and section:
            section = decompress(compression, section, DECOMPRESSED_BYTES_MAX)
        sections.append(section)
        left_bytes -= len(section)
        if left_bytes <= 0:
            break
    return sections


def _decoded_plainly(
    view: memoryview, batches: FoundBatches, check_crc: bool, with_headers: bool
) -> RecordColumns:
    raw = [
        (batch, read_batch_header(batch))
        for batch in [
            view[begin:end]
            for begin, end in zip(batches.begins.tolist(), batches.ends.tolist(), strict=True)
        ]
    ]
    return decode_batches(raw, check_crc=check_crc, with_headers=with_headers)


def _one_by_one(
    fetched: FetchedPartition, damage: _Damage, check_crc: bool, with_headers: bool
) -> Iterator[RecordColumns]:
    view = memoryview(fetched.buffer)
    for begin, end, header in fetched.visible_batches():
        try:
            if header is None:
                records = decode_batch(view[begin:end], check_crc=check_crc)
                run = BatchRun(len(records), TimestampType.CREATE_TIME, -1)
                columns = columns_from_records(records, (run,), 1)
            else:
                batch = (view[begin:end], header)
                columns = decode_batches([batch], check_crc=check_crc, with_headers=with_headers)
        except KafkaError as error:
            damage.met(begin, end, error)
        else:
            yield columns
