"""The headers of many records as columns: where each key and value begins, and its size.

Records have few headers, so they are read level by level: the first header of every record that has
one, then the second of every record that has two, and so on. When only few records are left, which
may have very many, a loop reads the rest; so the cost is in proportion to the headers whatever
their distribution is.
"""

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from headwater.client.columns.varint_arrays import (
    Bytes,
    Longs,
    MalformedNumberError,
    read_sizes,
    read_varints,
)
from headwater.wire.records import Buffer, CorruptRecordError, Header
from headwater.wire.records.varint import read_raw_varint

#: With fewer records left, the loop is faster.
_LEVEL_RECORDS_MIN: Final = 24
_HEADER_SIZE_MIN: Final = 2


class HeaderColumns(NamedTuple):
    """All headers one after the other; record i has those from `firsts[i]` to `firsts[i + 1]`."""

    firsts: Longs
    key_starts: Longs
    key_sizes: Longs
    value_starts: Longs
    #: -1 for null.
    value_sizes: Longs

    def part(self, start: int, stop: int) -> "HeaderColumns":
        """Those of the records from `start` to before `stop`."""
        return self._replace(firsts=self.firsts[start : stop + 1])

    def to_tuples(self, data: bytes | memoryview) -> list[tuple[Header, ...]]:
        """Each record's headers."""
        first, last = int(self.firsts[0]), int(self.firsts[-1])
        starts, value_starts = self.key_starts[first:last], self.value_starts[first:last]
        headers = [
            (
                str(data[start:end], "utf-8", "surrogateescape"),
                bytes(data[value_start:value_end]) if value_start <= value_end else None,
            )
            for start, end, value_start, value_end in zip(
                starts.tolist(),
                (starts + self.key_sizes[first:last]).tolist(),
                value_starts.tolist(),
                (value_starts + self.value_sizes[first:last]).tolist(),
                strict=True,
            )
        ]
        bounds = (self.firsts - first).tolist()
        return [tuple(headers[begin:end]) for begin, end in pairwise(bounds)]


def read_header_columns(
    data: Buffer, array: Bytes, positions: Longs, ends: Longs
) -> tuple[HeaderColumns, Longs]:
    """The headers whose counts stand at `positions`, and where each record's headers end."""
    raw, cursors = read_varints(array, positions)
    counts = raw >> 1
    if (raw & 1).any() or (counts * _HEADER_SIZE_MIN > ends - cursors).any():
        raise MalformedNumberError
    firsts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    columns = np.empty((4, int(firsts[-1])), np.int64)
    level = 0
    active = np.flatnonzero(counts)
    while len(active) >= _LEVEL_RECORDS_MIN:
        slots = firsts[active] + level
        raw, starts = read_varints(array, cursors[active])
        if (raw & 1).any():
            raise MalformedNumberError
        columns[0, slots] = starts
        columns[1, slots] = raw >> 1
        sizes, starts = read_sizes(array, starts + (raw >> 1))
        columns[2, slots] = starts
        columns[3, slots] = sizes
        cursors[active] = starts + np.maximum(sizes, 0)
        level += 1
        active = active[counts[active] > level]
    for index in active.tolist():
        cursors[index] = _read_rest(
            data,
            columns,
            int(firsts[index]) + level,
            int(firsts[index + 1]),
            int(cursors[index]),
        )
    return HeaderColumns(firsts, *columns), cursors


def _read_rest(data: Buffer, columns: Longs, slot: int, slot_end: int, position: int) -> int:
    """One record's headers for the slots from `slot` on; returns where they end."""
    rows = []
    try:
        for _ in range(slot, slot_end):
            raw, start = read_raw_varint(data, position)
            position = start + (raw >> 1)
            value_raw, value_start = read_raw_varint(data, position)
            if raw & 1 or (value_raw & 1 and value_raw != 1):
                raise MalformedNumberError
            rows.append((start, raw >> 1, value_start, (value_raw >> 1) - (value_raw & 1)))
            position = value_start + (value_raw >> 1)
    except CorruptRecordError:
        raise MalformedNumberError from None
    columns[:, slot:slot_end] = np.array(rows, np.int64).reshape(-1, 4).T
    return position
