"""Columns to the Arrow batch that `poll_arrow` returns, without a Python object for each record.

Keys and values lie scattered over the bytes that were fetched. An Arrow array is laid over those
bytes in which the fields and the gaps between them take turns; `take` of every second element then
copies the fields, and nothing else, in Arrow's own code.

    topic           dictionary<string>
    partition       int32
    offset          int64
    timestamp       int64                                      milliseconds since 1970
    timestamp_type  int8                                       0 the producer's, 1 the broker's
    key             binary
    value           binary
    headers         list<struct<key: string, value: binary>>   empty where there are none
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.client.columns.arrow_library import load_arrow
from headwater.client.columns.decoded_columns import RecordColumns
from headwater.client.columns.varint_arrays import Longs

if TYPE_CHECKING:
    import pyarrow


class ArrowPart(NamedTuple):
    """Records of one partition."""

    topic: str
    partition: int
    columns: RecordColumns


def arrow_schema() -> pyarrow.Schema:
    arrow = load_arrow()
    return arrow.schema(
        [
            ("topic", arrow.dictionary(arrow.int32(), arrow.string())),
            ("partition", arrow.int32()),
            ("offset", arrow.int64()),
            ("timestamp", arrow.int64()),
            ("timestamp_type", arrow.int8()),
            ("key", arrow.binary()),
            ("value", arrow.binary()),
            ("headers", arrow.list_(_header_type(arrow))),
        ]
    )


def columns_to_arrow(parts: Sequence[ArrowPart]) -> pyarrow.RecordBatch:
    """All parts, one after the other, as one batch."""
    arrow = load_arrow()
    all_columns = [part.columns for part in parts]
    counts = [len(columns) for columns in all_columns]
    topics = list(dict.fromkeys(part.topic for part in parts))
    topic_numbers = np.array([topics.index(part.topic) for part in parts], np.int32)
    partitions = np.array([part.partition for part in parts], np.int32)
    return arrow.record_batch(
        [
            arrow.DictionaryArray.from_arrays(
                arrow.array(np.repeat(topic_numbers, counts)), arrow.array(topics, arrow.string())
            ),
            arrow.array(np.repeat(partitions, counts)),
            arrow.array(_joined([columns.offsets for columns in all_columns])),
            arrow.array(_joined([columns.timestamps for columns in all_columns])),
            arrow.array(_timestamp_types(all_columns)),
            _field_column(arrow, [(c.data, c.key_starts, c.key_sizes) for c in all_columns]),
            _field_column(arrow, [(c.data, c.value_starts, c.value_sizes) for c in all_columns]),
            _header_column(arrow, all_columns),
        ],
        schema=arrow_schema(),
    )


def _header_type(arrow: ModuleType) -> pyarrow.DataType:
    return arrow.struct([("key", arrow.string()), ("value", arrow.binary())])


def _joined(arrays: list[Longs]) -> Longs:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _timestamp_types(all_columns: list[RecordColumns]) -> object:
    runs = [run for columns in all_columns for run in columns.runs]
    kinds = np.array([run.timestamp_type for run in runs], np.int8)
    return np.repeat(kinds, [run.record_count for run in runs])


def _field_column(arrow: ModuleType, places: list[tuple[bytes, Longs, Longs]]) -> pyarrow.Array:
    """The keys or the values of all parts; to make null of each part would cost more."""
    if all((sizes < 0).all() for _, _, sizes in places):
        return arrow.nulls(sum(len(sizes) for _, _, sizes in places), arrow.binary())
    return _one_array(arrow, [_fields(arrow, *place) for place in places])


def _header_column(arrow: ModuleType, all_columns: list[RecordColumns]) -> pyarrow.Array:
    if all(columns.headers is None for columns in all_columns):
        return _no_headers(arrow, sum(map(len, all_columns)))
    return _one_array(arrow, [_headers(arrow, columns) for columns in all_columns])


def _one_array(arrow: ModuleType, arrays: list[pyarrow.Array]) -> pyarrow.Array:
    return arrays[0] if len(arrays) == 1 else arrow.concat_arrays(arrays)


def _fields(arrow: ModuleType, data: bytes, starts: Longs, sizes: Longs) -> pyarrow.Array:
    """The fields at these places, which grow; a size of -1 is null."""
    count = len(sizes)
    is_there = sizes >= 0
    if not is_there.any():
        return arrow.nulls(count, arrow.binary())
    # The array's elements: a gap and a field for each record.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0] = 0
    offsets[1::2] = starts
    offsets[2::2] = starts + np.maximum(sizes, 0)
    validity = None
    if not is_there.all():
        bits = np.ones(2 * count, np.bool_)
        bits[1::2] = is_there
        validity = arrow.py_buffer(np.packbits(bits, bitorder="little"))
    scattered = arrow.Array.from_buffers(
        arrow.binary(), 2 * count, [validity, arrow.py_buffer(offsets), arrow.py_buffer(data)]
    )
    return scattered.take(arrow.array(np.arange(1, 2 * count, 2, dtype=np.int32)))


def _no_headers(arrow: ModuleType, count: int) -> pyarrow.Array:
    bounds = arrow.array(np.zeros(count + 1, np.int32))
    return arrow.ListArray.from_arrays(bounds, arrow.array([], _header_type(arrow)))


def _headers(arrow: ModuleType, columns: RecordColumns) -> pyarrow.Array:
    headers = columns.headers
    if headers is None:
        return _no_headers(arrow, len(columns))
    first, last = int(headers.firsts[0]), int(headers.firsts[-1])
    own = slice(first, last)
    keys = _fields(arrow, columns.data, headers.key_starts[own], headers.key_sizes[own])
    values = _fields(arrow, columns.data, headers.value_starts[own], headers.value_sizes[own])
    structs = arrow.StructArray.from_arrays([_texts(arrow, keys), values], names=["key", "value"])
    bounds = arrow.array((headers.firsts - first).astype(np.int32))
    return arrow.ListArray.from_arrays(bounds, structs)


def _texts(arrow: ModuleType, keys: pyarrow.Array) -> pyarrow.Array:
    """Names of headers; Arrow has no place for bytes in a text that are not UTF-8."""
    try:
        return keys.cast(arrow.string())
    except arrow.ArrowInvalid:
        names = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
        return arrow.array(names, arrow.string())
