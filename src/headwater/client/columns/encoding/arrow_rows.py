"""The Arrow batch that somebody wants to send, checked and brought into one shape.

    value      binary or text                             needed; null is a tombstone
    key        binary or text                             decides the partition
    timestamp  int64 milliseconds, or an Arrow timestamp  now, where there is none
    headers    list<struct<key, value>>

Other columns are refused, because whoever gave them would miss them in the topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np

from headwater.client.columns.arrow.library import (
    binary_array,
    load_arrow,
    nulls_of,
    number_array,
    numbers_of,
)
from headwater.client.columns.encoding.varint_rows import Varints, write_rows
from headwater.client.columns.varint_arrays import Longs
from headwater.client.kafka_errors import InvalidRecordError

if TYPE_CHECKING:
    import pyarrow

COLUMNS: Final = ("key", "value", "timestamp", "headers")
_NULL_SIZE: Final = -1


@dataclass(frozen=True)
class ArrowRows:
    """Row i of every column is record i; keys, values and tails are `binary` arrays."""

    keys: pyarrow.Array | None
    values: pyarrow.Array
    #: None if all records have the time of sending.
    timestamps: Longs | None
    #: What stands after each value, the count of headers and the headers; None if nobody has any.
    tails: pyarrow.Array | None

    def __len__(self) -> int:
        return len(self.values)

    # Sizes, -1 for null.

    @cached_property
    def key_sizes(self) -> Longs | None:
        return None if self.keys is None else _sizes(load_arrow(), self.keys)

    @cached_property
    def value_sizes(self) -> Longs:
        return _sizes(load_arrow(), self.values)

    @cached_property
    def tail_sizes(self) -> Longs | None:
        return None if self.tails is None else _sizes(load_arrow(), self.tails)

    def take(self, order: Longs) -> ArrowRows:
        """The rows of these numbers, in their order."""
        indexes = number_array(load_arrow(), order)
        return ArrowRows(
            None if self.keys is None else self.keys.take(indexes),
            self.values.take(indexes),
            None if self.timestamps is None else self.timestamps[order],
            None if self.tails is None else self.tails.take(indexes),
        )


def read_rows(
    batch: pyarrow.RecordBatch | pyarrow.Table, *, piece_bytes_max: int, now_ms: int
) -> Iterator[ArrowRows]:
    """The batch in pieces of at most so many bytes, unless one record has more."""
    arrow = load_arrow()
    if isinstance(batch, arrow.RecordBatch):
        batch = arrow.Table.from_batches([batch])
    elif not isinstance(batch, arrow.Table):
        raise TypeError(f"An Arrow RecordBatch or Table can be sent, not {type(batch).__name__}.")
    names = batch.schema.names
    if "value" not in names or not set(names) <= set(COLUMNS) or len(set(names)) < len(names):
        raise InvalidRecordError(
            f"An Arrow batch to send has a column 'value' and may have 'key', 'timestamp' and "
            f"'headers', each once; this one has {', '.join(map(repr, names)) or 'no columns'}."
        )
    for index, column in enumerate(batch.columns):
        if _is_view(arrow, column.type):
            # How large a slice of views is, not every pyarrow can tell.
            batch = batch.set_column(index, names[index], column.cast(arrow.binary()))
    # No rows at all are enough to find a column of the wrong type, before anything is sent.
    _rows_of(arrow, batch.slice(0, 0), now_ms)
    return _pieces(arrow, batch, piece_bytes_max, now_ms)


def _pieces(
    arrow: ModuleType, table: pyarrow.Table, bytes_max: int, now_ms: int
) -> Iterator[ArrowRows]:
    row_count = len(table)
    if row_count > 1 and (piece_count := -(-table.nbytes // bytes_max)) > 1:
        rows_each = -(-row_count // min(piece_count, row_count))
        for first in range(0, row_count, rows_each):
            # One with large rows may still be too large.
            yield from _pieces(arrow, table.slice(first, rows_each), bytes_max, now_ms)
    elif row_count:
        yield _rows_of(arrow, table, now_ms)


def _rows_of(arrow: ModuleType, table: pyarrow.Table, now_ms: int) -> ArrowRows:
    columns = {
        # An empty array beside the others makes Arrow move them together, with small offsets.
        name: arrow.concat_arrays([*column.chunks, arrow.nulls(0, column.type)])
        if column.num_chunks != 1 or _is_large(arrow, column.type)
        else column.chunk(0)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    values = _binary(arrow, "value", columns["value"])
    keys = _binary(arrow, "key", columns["key"]) if "key" in columns else None
    if keys is not None and keys.null_count == len(keys):
        keys = None
    tails = _tails(arrow, columns["headers"]) if "headers" in columns else None
    times = columns.get("timestamp")
    return ArrowRows(
        keys, values, None if times is None else _timestamps(arrow, times, now_ms), tails
    )


def _is_large(arrow: ModuleType, kind: pyarrow.DataType) -> bool:
    return bool(arrow.types.is_large_binary(kind) or arrow.types.is_large_string(kind))


def _is_view(arrow: ModuleType, kind: pyarrow.DataType) -> bool:
    return bool(arrow.types.is_binary_view(kind) or arrow.types.is_string_view(kind))


def _binary(arrow: ModuleType, name: str, column: pyarrow.Array) -> pyarrow.Array:
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == arrow.binary():
        return column
    kinds = arrow.types
    if (
        kinds.is_string(column.type)
        or _is_large(arrow, column.type)
        or kinds.is_fixed_size_binary(column.type)
        or _is_view(arrow, column.type)
        or kinds.is_null(column.type)
    ):
        return column.cast(arrow.binary())
    raise InvalidRecordError(
        f"The column {name!r} holds {column.type}, but keys and values are binary or text."
    )


def _sizes(arrow: ModuleType, column: pyarrow.Array) -> Longs:
    return _lengths(arrow, arrow.compute.binary_length(column), _NULL_SIZE)


def _lengths(arrow: ModuleType, column: pyarrow.Array, null_length: int) -> Longs:
    width = np.int64 if column.type == arrow.int64() else np.int32
    lengths = numbers_of(column, width).astype(np.int64)
    lengths[nulls_of(column)] = null_length
    return lengths


def _timestamps(arrow: ModuleType, column: pyarrow.Array, now_ms: int) -> Longs:
    if arrow.types.is_timestamp(column.type):
        # The zone does not matter: what is stored counts from 1970 in UTC.
        column = column.cast(arrow.timestamp("ms", column.type.tz), safe=False)
    elif not arrow.types.is_integer(column.type) and not arrow.types.is_null(column.type):
        raise InvalidRecordError(
            f"The column 'timestamp' holds {column.type}, but timestamps are int64 milliseconds "
            f"or an Arrow timestamp."
        )
    column = column.cast(arrow.int64())
    return np.where(nulls_of(column), now_ms, numbers_of(column, np.int64))


def _tails(arrow: ModuleType, column: pyarrow.Array) -> pyarrow.Array | None:
    """Each record's headers as they stand in it, with their count; None if there are none."""
    kinds = arrow.types
    if kinds.is_null(column.type):
        return None
    is_list = kinds.is_list(column.type) or kinds.is_large_list(column.type)
    inner = column.type.value_type if is_list else None
    if inner is None or not kinds.is_struct(inner) or {f.name for f in inner} != {"key", "value"}:
        raise InvalidRecordError(
            f"The column 'headers' holds {column.type}, but headers are "
            f"list<struct<key: string, value: binary>>."
        )
    counts = _lengths(arrow, arrow.compute.list_value_length(column), 0)
    if not counts.any():
        return None
    fields = column.flatten().flatten()
    keys = _binary(arrow, "headers.key", fields[inner.get_field_index("key")])
    values = _binary(arrow, "headers.value", fields[inner.get_field_index("value")])
    if keys.null_count:
        raise InvalidRecordError("A header's key may not be null.")
    flat = join_rows(
        arrow,
        number_rows(arrow, _sizes(arrow, keys)),
        keys,
        number_rows(arrow, _sizes(arrow, values)),
        values,
    )
    bounds = np.frombuffer(flat.buffers()[1], np.int32)[: len(flat) + 1]
    firsts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    together = binary_array(arrow, flat.buffers()[2], bounds[firsts], len(column))
    return join_rows(arrow, number_rows(arrow, counts), together)


def number_rows(arrow: ModuleType, numbers: Longs) -> pyarrow.Array:
    """Each number as a variable-length one."""
    data, bounds = write_rows([Varints.of(numbers)], len(numbers))
    return binary_array(arrow, data, bounds.astype(np.int32), len(numbers))


def join_rows(arrow: ModuleType, *columns: pyarrow.Array) -> pyarrow.Array:
    """The bytes of each row one after the other; null has none."""
    return arrow.compute.binary_join_element_wise(
        *columns, _nothing(arrow), null_handling="replace", null_replacement=b""
    )


@cache
def _nothing(arrow: ModuleType) -> pyarrow.Scalar:
    """No bytes."""
    return binary_array(arrow, b"", np.zeros(2, np.int32), 1)[0]
