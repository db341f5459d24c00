"""Rows whose keys are all of one size, and whose values are too: encoded as one table of bytes.

Records of one size differ, beside key and value, in the number of their place in the batch alone,
and batches with as many of them not even in that. So what stands around keys and values is computed
for the rows of one batch, and the rest is copying, of all batches at once. A record takes one byte
more from its place 64 in the batch on, and again from 8,192 on: between these, all records are
equally long, and a *stretch* of each batch is a table with a row for each record.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from headwater.base.reused_memory import ReusedMemory
from headwater.client.columns.encoding.varint_rows import (
    ATTRIBUTES,
    NO_DELTA,
    NO_HEADERS,
    NULL,
    Varints,
    write_rows,
)
from headwater.client.columns.varint_arrays import Bytes, Longs

if TYPE_CHECKING:
    import pyarrow

#: The places in a batch from which on their number takes one byte more.
_LONGER_FROM: Final = (64, 8_192, 1_048_576)
#: Attributes, no time delta, and that there are no headers: a byte each.
_FIXED_BYTES: Final = 3


class AlikeRows(NamedTuple):
    """Row i of both is record i; without keys there are none."""

    keys: Bytes | None
    values: Bytes

    @classmethod
    def of(cls, keys: pyarrow.Array | None, values: pyarrow.Array) -> AlikeRows | None:
        """Binary columns as tables; None if not all fields of a column are of one size, or null."""
        value_table = _table(values)
        key_table = None if keys is None else _table(keys)
        if value_table is None or (keys is not None and key_table is None):
            return None
        return cls(key_table, value_table)

    @property
    def row_bytes(self) -> int:
        """How long a key and a value are together."""
        return int(self.values.shape[1]) + (0 if self.keys is None else int(self.keys.shape[1]))

    def part(self, first: int, last: int) -> AlikeRows:
        """Those from `first` to before `last`."""
        keys = None if self.keys is None else self.keys[first:last]
        return AlikeRows(keys, self.values[first:last])


def _table(column: pyarrow.Array) -> Bytes | None:
    count = len(column)
    if not count or column.null_count:
        return None
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + count + 1]
    size = int(bounds[1] - bounds[0])
    if size == 0 or not (bounds[1:] - bounds[:-1] == size).all():
        return None
    content: Bytes = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return content.reshape(count, size)


def encode_alike(
    rows: AlikeRows, batch_rows: int, memory: ReusedMemory
) -> Iterator[tuple[memoryview, int]]:
    """The records of each batch, and how many: `batch_rows` each, and what is left in the last."""
    count = len(rows.values)
    batch_count = count // batch_rows
    whole = batch_count * batch_rows
    if batch_count:
        yield from _batches(rows, 0, batch_count, batch_rows, memory)
    if whole < count:
        yield from _batches(rows, whole, 1, count - whole, memory)


def _batches(
    rows: AlikeRows, first_row: int, batch_count: int, batch_rows: int, memory: ReusedMemory
) -> Iterator[tuple[memoryview, int]]:
    """That many batches of as many rows, from this row on."""
    keys, values = rows
    key_bytes = None if keys is None else keys.shape[1]
    stretches = _stretches(batch_rows, key_bytes, values.shape[1])
    batch_bytes = sum(each.size_bytes for each in stretches)
    table: Bytes = np.frombuffer(memory.take(batch_count * batch_bytes), np.uint8)
    table = table.reshape(batch_count, batch_bytes)
    taken = slice(first_row, first_row + batch_count * batch_rows)
    shape = (batch_count, batch_rows, -1)
    position = 0
    for stretch in stretches:
        places = slice(stretch.first, stretch.last)
        records = table[:, position : position + stretch.size_bytes].reshape(
            batch_count, stretch.last - stretch.first, stretch.record_bytes
        )
        position += stretch.size_bytes
        end = stretch.head.shape[1]
        records[:, :, :end] = stretch.head
        if keys is not None:
            start, end = end, end + keys.shape[1]
            records[:, :, start:end] = keys[taken].reshape(shape)[:, places]
            start, end = end, end + len(stretch.value_length)
            records[:, :, start:end] = stretch.value_length
        records[:, :, end:-1] = values[taken].reshape(shape)[:, places]
        records[:, :, -1] = NO_HEADERS
    for batch in table:
        yield batch.data, batch_rows


class _Stretch(NamedTuple):
    """Records from one place of a batch to another that are equally long."""

    first: int
    last: int
    record_bytes: int
    #: What stands before key and value of each; with a key only what stands before that.
    head: Bytes
    #: What stands between key and value.
    value_length: Bytes

    @property
    def size_bytes(self) -> int:
        return (self.last - self.first) * self.record_bytes


@lru_cache(maxsize=64)
def _stretches(batch_rows: int, key_bytes: int | None, value_bytes: int) -> tuple[_Stretch, ...]:
    bounds = [0, *(place for place in _LONGER_FROM if place < batch_rows), batch_rows]
    return tuple(_stretch(first, last, key_bytes, value_bytes) for first, last in pairwise(bounds))


def _stretch(first: int, last: int, key_bytes: int | None, value_bytes: int) -> _Stretch:
    offsets = Varints.of(np.arange(first, last, dtype=np.int64))
    value_length = Varints.of(_number(value_bytes))
    size_bytes = int(offsets.widths[0] + value_length.widths[0]) + value_bytes + _FIXED_BYTES
    before_value: list[Varints | int]
    if key_bytes is None:
        size_bytes += 1
        before_value = [NULL, value_length]
    else:
        key_length = Varints.of(_number(key_bytes))
        size_bytes += int(key_length.widths[0]) + key_bytes
        before_value = [key_length]
    length = Varints.of(_number(size_bytes))
    columns = [length, ATTRIBUTES, NO_DELTA, offsets, *before_value]
    count = last - first
    head, _ = write_rows([_repeated(column, count) for column in columns], count)
    return _Stretch(
        first,
        last,
        int(length.widths[0]) + size_bytes,
        head.reshape(count, -1),
        write_rows([value_length], 1)[0],
    )


def _number(value: int) -> Longs:
    return np.array([value], np.int64)


def _repeated(column: Varints | int, count: int) -> Varints | int:
    """One number for all rows."""
    if isinstance(column, int) or len(column.raw) == count:
        return column
    return Varints(np.repeat(column.raw, count), np.repeat(column.widths, count))
