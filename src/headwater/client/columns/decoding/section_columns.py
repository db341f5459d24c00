"""The records sections of many batches read together: each field of all records at once.

An array operation costs a microsecond before it has done anything, and the usual batch has a
hundred records; so the sections of many batches lie in one buffer, with or without something
between them. The begin of every record is found (`record_positions`), and then field after field is
read for all records (`varint_arrays`). It is told that something is wrong, but not what.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.client.columns.decoding.batch_table import BatchTable
from headwater.client.columns.decoding.decoded_columns import RecordColumns
from headwater.client.columns.decoding.header_columns import read_header_columns
from headwater.client.columns.decoding.record_positions import Sections, find_records
from headwater.client.columns.varint_arrays import (
    Bytes,
    Longs,
    MalformedNumberError,
    read_sizes,
    read_varints,
    read_varlongs,
    unzigzag,
)
from headwater.wire.records import Buffer
from headwater.wire.records.batch_header import TIMESTAMP_TYPE_BIT


def read_sections(
    data: Buffer, starts: Longs, sizes: Longs, table: BatchTable, *, with_headers: bool
) -> RecordColumns:
    """The records of these batches, whose sections stand in `data`.

    Raises `BrokenChainError` or `MalformedNumberError` if a batch is not as it should be.
    """
    counts = table.record_counts
    array: Bytes = np.frombuffer(data, np.uint8)
    cursors, ends = find_records(data, array, Sections(starts, sizes, counts))
    # One byte of attributes, which no record has.
    raw_times, cursors = read_varlongs(array, cursors + 1)
    raw, cursors = read_varints(array, cursors)
    deltas = raw >> 1
    if (raw & 1).any() or (deltas > _spread(table.last_offset_deltas, counts)).any():
        raise MalformedNumberError
    if not _grow(deltas, counts):
        raise MalformedNumberError
    offsets = _spread(table.base_offsets, counts) + deltas
    key_sizes, key_starts = read_sizes(array, cursors)
    value_sizes, value_starts = read_sizes(array, key_starts + np.maximum(key_sizes, 0))
    cursors = value_starts + np.maximum(value_sizes, 0)
    headers = None
    if not with_headers:
        # They end where the record ends, and nobody looks.
        cursors = np.maximum(cursors + 1, ends)
    elif array.take(cursors, mode="clip").any():
        headers, cursors = read_header_columns(data, array, cursors, ends)
    else:
        cursors += 1
    # Fields only ever lead forward, so one that led out of its record is found here.
    if (cursors != ends).any():
        raise MalformedNumberError
    return RecordColumns(
        data,
        offsets,
        _timestamps(table, raw_times),
        key_starts,
        key_sizes,
        value_starts,
        value_sizes,
        headers,
        table.runs(),
        len(table),
    )


def _grow(deltas: Longs, counts: Longs) -> bool:
    """Whether those of each batch do: from one batch to the next they may fall."""
    grows = deltas[1:] > deltas[:-1]
    if len(counts) > 1:
        firsts = np.cumsum(counts)[:-1]
        grows[firsts[(firsts > 0) & (firsts <= len(grows))] - 1] = True
    return bool(grows.all())


def _spread(numbers: Longs, counts: Longs) -> Longs:
    """A number of each batch for each of its records, or the one number for all."""
    return numbers if len(numbers) == 1 else np.repeat(numbers, counts)


def _timestamps(table: BatchTable, raw: npt.NDArray[np.uint64]) -> Longs:
    # Array arithmetic wraps around as Java's does.
    timestamps = _spread(table.base_timestamps, table.record_counts) + unzigzag(raw)
    is_by_broker = table.attributes & TIMESTAMP_TYPE_BIT != 0
    if is_by_broker.any():
        latest = np.repeat(table.max_timestamps, table.record_counts)
        timestamps = np.where(np.repeat(is_by_broker, table.record_counts), latest, timestamps)
    return timestamps
