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
            _one_array(
                arrow,
                [_fields(arrow, c.data, c.key_starts, c.key_sizes) for c in all_columns],
                arrow.binary(),
            ),
            _one_array(
                arrow,
                [_fields(arrow, c.data, c.value_starts, c.value_sizes) for c in all_columns],
                arrow.binary(),
            ),
            _one_array(
                arrow, [_headers(arrow, c) for c in all_columns], arrow.list_(_header_type(arrow))
            ),
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


def _one_array(
    arrow: ModuleType, arrays: list[pyarrow.Array], kind: pyarrow.DataType
) -> pyarrow.Array:
    if len(arrays) == 1:
        return arrays[0]
    return arrow.concat_arrays(arrays) if arrays else arrow.array([], kind)


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


def _headers(arrow: ModuleType, columns: RecordColumns) -> pyarrow.Array:
    headers = columns.headers
    if headers is None:
        bounds = np.zeros(len(columns) + 1, np.int32)
        keys, values = arrow.array([], arrow.string()), arrow.array([], arrow.binary())
    else:
        first, last = int(headers.firsts[0]), int(headers.firsts[-1])
        bounds = (headers.firsts - first).astype(np.int32)
        keys = _texts(
            arrow,
            _fields(
                arrow,
                columns.data,
                headers.key_starts[first:last],
                headers.key_sizes[first:last],
            ),
        )
        values = _fields(
            arrow,
            columns.data,
            headers.value_starts[first:last],
            headers.value_sizes[first:last],
        )
    structs = arrow.StructArray.from_arrays([keys, values], names=["key", "value"])
    return arrow.ListArray.from_arrays(arrow.array(bounds), structs)


def _texts(arrow: ModuleType, keys: pyarrow.Array) -> pyarrow.Array:
    """Names of headers; Arrow has no place for bytes in a text that are not UTF-8."""
    try:
        return keys.cast(arrow.string())
    except arrow.ArrowInvalid:
        names = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
        return arrow.array(names, arrow.string())
