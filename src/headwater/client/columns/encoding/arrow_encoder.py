"""Arrow batches to the records sections of a producer's batches, without an object for each record.

All that stands around keys and values is computed for many records at once: the lengths, and the
deltas to the begin of the batch that a record will be in (`varint_rows`). Arrow then joins it with
keys and values row by row, and the data buffer of that array *is* the records, one batch after the
other: cutting it is all that is left.

Records with a key go where its murmur2 says, those without one to whatever partition the producer
chooses, for each batch if no record has a key. The records of a partition keep their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from headwater.base.reused_memory import ReusedMemory
from headwater.client.columns.arrow.library import binary_array, load_arrow
from headwater.client.columns.encoding.alike_rows import AlikeRows, encode_alike
from headwater.client.columns.encoding.arrow_rows import (
    ArrowRows,
    join_rows,
    number_rows,
    read_rows,
)
from headwater.client.columns.encoding.audit_tails import Stretch, TakeNumbers, with_ids
from headwater.client.columns.encoding.key_hashes import murmur2_of_fields, partitions_of
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.columns.encoding.varint_rows import (
    ATTRIBUTES,
    NO_DELTA,
    NO_HEADERS,
    NULL,
    Varints,
    write_rows,
)
from headwater.client.columns.varint_arrays import Longs
from headwater.wire.records import Buffer

if TYPE_CHECKING:
    import pyarrow

#: What is encoded at a time: enough for batches of several partitions, and not much memory.
_PIECE_BYTES: Final = 4 << 20
#: What a record takes beyond key, value and headers: at most so much.
_RECORD_OVERHEAD_BYTES: Final = 27


class ArrowSection(NamedTuple):
    partition: int
    section: RecordSection


class _Cut(NamedTuple):
    """Rows that become one batch."""

    #: None is chosen when it is needed.
    partition: int | None
    first: int
    last: int


def encode_arrow(
    batch: pyarrow.RecordBatch | pyarrow.Table,
    *,
    partition: int | None,
    partition_count: int,
    choose_partition: Callable[[], int],
    section_bytes_max: int,
    now_ms: int,
    memory: ReusedMemory,
    take_numbers: TakeNumbers | None = None,
) -> Iterator[ArrowSection]:
    """The records in sections of at most so many bytes, or one record, encoded while asked for.

    A wrong schema is told at once. With a partition, all records go there; without one,
    `choose_partition` says where records without a key go. Sections may be in `memory`. With
    `take_numbers` every record gets an audit id.
    """
    pieces = read_rows(batch, piece_bytes_max=max(_PIECE_BYTES, section_bytes_max), now_ms=now_ms)
    return _encoded(
        pieces,
        partition,
        partition_count,
        choose_partition,
        section_bytes_max,
        now_ms,
        memory,
        take_numbers,
    )


def _encoded(
    pieces: Iterator[ArrowRows],
    partition: int | None,
    partition_count: int,
    choose_partition: Callable[[], int],
    section_bytes_max: int,
    now_ms: int,
    memory: ReusedMemory,
    take_numbers: TakeNumbers | None,
) -> Iterator[ArrowSection]:
    for piece in pieces:
        rows = piece
        groups = [_Cut(partition, 0, len(rows))]
        if partition is None and rows.keys is not None and rows.key_sizes is not None:
            partitions = _partitions(rows.keys, rows.key_sizes, partition_count, choose_partition)
            rows, groups = _by_partition(rows, partitions)
        if take_numbers is not None:
            places = [
                Stretch(choose_partition() if number is None else number, first, last)
                for number, first, last in groups
            ]
            groups = [_Cut(*place) for place in places]
            rows = with_ids(rows, places, take_numbers, now_ms)
        alike = None
        if rows.timestamps is None and rows.tails is None:
            alike = AlikeRows.of(rows.keys, rows.values)
        if alike is not None:
            sections = _alike_sections(alike, groups, section_bytes_max, now_ms, memory)
        else:
            cuts = [cut for group in groups for cut in _cuts(rows, group, section_bytes_max)]
            sections = _sections(rows, cuts, now_ms)
        for number, section in sections:
            yield ArrowSection(choose_partition() if number is None else number, section)


def _alike_sections(
    rows: AlikeRows, groups: list[_Cut], section_bytes_max: int, now_ms: int, memory: ReusedMemory
) -> Iterator[tuple[int | None, RecordSection]]:
    batch_rows = max(1, section_bytes_max // (rows.row_bytes + _RECORD_OVERHEAD_BYTES))
    for partition, first, last in groups:
        for data, record_count in encode_alike(rows.part(first, last), batch_rows, memory):
            yield partition, RecordSection(data, record_count, now_ms, now_ms)


def _by_partition(rows: ArrowRows, partitions: Longs) -> tuple[ArrowRows, list[_Cut]]:
    """The rows sorted by partition, and where each partition's rows are."""
    # Few bits make numpy sort in linear time.
    is_small = partitions.max() < 1 << 15
    order = np.argsort(partitions.astype(np.int16 if is_small else np.int64), kind="stable")
    counts = np.bincount(partitions)
    lasts = np.cumsum(counts)
    groups = [
        _Cut(number, int(lasts[number] - counts[number]), last)
        for number, last in enumerate(lasts.tolist())
        if counts[number]
    ]
    return rows.take(order), groups


def _partitions(
    keys: pyarrow.Array, sizes: Longs, partition_count: int, choose_partition: Callable[[], int]
) -> Longs:
    """The partition of each row."""
    _, bounds, data = keys.buffers()
    starts = np.frombuffer(bounds, np.int32)[keys.offset : keys.offset + len(keys)]
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    hashes = murmur2_of_fields(content, starts.astype(np.int64), np.maximum(sizes, 0))
    partitions = partitions_of(hashes, partition_count)
    is_keyless = sizes < 0
    if is_keyless.any():
        partitions[is_keyless] = choose_partition()
    return partitions


def _cuts(rows: ArrowRows, group: _Cut, section_bytes_max: int) -> Iterator[_Cut]:
    """The group in stretches of at most so many bytes, or one record."""
    sizes = np.maximum(rows.value_sizes[group.first : group.last], 0) + _RECORD_OVERHEAD_BYTES
    if rows.key_sizes is not None:
        sizes += np.maximum(rows.key_sizes[group.first : group.last], 0)
    if rows.tail_sizes is not None:
        sizes += rows.tail_sizes[group.first : group.last]
    # In a list, since one number at a time is looked for.
    ends = np.cumsum(sizes).tolist()
    first = 0
    used_bytes = 0
    while first < len(ends):
        last = max(bisect_right(ends, used_bytes + section_bytes_max, first), first + 1)
        yield _Cut(group.partition, group.first + first, group.first + last)
        used_bytes = ends[last - 1]
        first = last


def _sections(
    rows: ArrowRows, cuts: list[_Cut], now_ms: int
) -> Iterator[tuple[int | None, RecordSection]]:
    firsts = np.array([cut.first for cut in cuts], np.int64)
    counts = np.array([cut.last - cut.first for cut in cuts], np.int64)
    offset_deltas = np.arange(len(rows), dtype=np.int64) - np.repeat(firsts, counts)
    if rows.timestamps is None:
        bases = latest = np.full(len(cuts), now_ms, np.int64)
        time_deltas = None
    else:
        bases = rows.timestamps[firsts]
        latest = np.maximum.reduceat(rows.timestamps, firsts)
        time_deltas = rows.timestamps - np.repeat(bases, counts)
    joined = _joined_rows(rows, time_deltas, offset_deltas)
    bounds = np.frombuffer(joined.buffers()[1], np.int32)
    # The buffer may be longer than what is in it.
    data = memoryview(joined.buffers()[2])[: bounds[len(rows)]]
    # Without tails, the byte that ends a record stands before the next one: see `_joined_rows`.
    shift = 1 if rows.tails is None else 0
    begins = (bounds[firsts] + shift).tolist()
    ends = (bounds[firsts + counts] + shift).tolist()
    for cut, begin, end, base, last in zip(
        cuts, begins, ends, bases.tolist(), latest.tolist(), strict=True
    ):
        section: Buffer = data[begin:end]
        if shift and cut.last == len(rows):
            section = b"".join((section, b"\0"))
        yield cut.partition, RecordSection(section, cut.last - cut.first, base, last)


def _joined_rows(rows: ArrowRows, time_deltas: Longs | None, offset_deltas: Longs) -> pyarrow.Array:
    """The records, each an element; without time deltas they are all of one time.

    A record without headers ends in a zero. To spare a column of zeros, each element then begins
    with the one of the record before it instead.
    """
    arrow = load_arrow()
    count = len(rows)
    offsets, value_lengths = Varints.of(offset_deltas), Varints.of(rows.value_sizes)
    times: Varints | int = NO_DELTA if time_deltas is None else Varints.of(time_deltas)
    sizes = offsets.widths + value_lengths.widths + np.maximum(rows.value_sizes, 0)
    sizes += 1 + (1 if isinstance(times, int) else times.widths)
    sizes += 1 if rows.tail_sizes is None else rows.tail_sizes
    after_offsets: list[Varints | int]
    if rows.key_sizes is None:
        sizes += 1
        after_offsets = [NULL, value_lengths]
    else:
        key_lengths = Varints.of(rows.key_sizes)
        sizes += key_lengths.widths + np.maximum(rows.key_sizes, 0)
        after_offsets = [key_lengths]
    head = [Varints.of(sizes), ATTRIBUTES, times, offsets, *after_offsets]
    if rows.tails is None:
        head.insert(0, NO_HEADERS)
    data, bounds = write_rows(head, count)
    columns = [binary_array(arrow, data, bounds.astype(np.int32), count)]
    if rows.keys is not None:
        columns += [rows.keys, number_rows(arrow, rows.value_sizes)]
    columns.append(rows.values)
    if rows.tails is not None:
        columns.append(rows.tails)
    return join_rows(arrow, *columns)
