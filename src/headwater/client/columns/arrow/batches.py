"""Columns to the Arrow batch that `poll_arrow` returns, without a Python object for each record.

    topic           dictionary<string>
    partition       int32
    offset          int64
    timestamp       int64                                      milliseconds since 1970
    timestamp_type  int8                                       0 the producer's, 1 the broker's
    key             binary
    value           binary
    headers         list<struct<key: string, value: binary>>   empty where there are none

Whoever needs less, or other types, gives a schema of his own: any of these columns in any order,
the topic as `string` too, the time as a `timestamp` of milliseconds or microseconds, its type as
`int32` too and also under the name `timestampType`, keys and values as `binary_view`, which are not
copied. Only what the schema has is made, and a record without headers has null there, as in Spark's
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from headwater.client.columns.arrow.field_views import FieldPlaces
from headwater.client.columns.arrow.fields import field_column, header_column, header_type
from headwater.client.columns.arrow.library import load_arrow, number_array, text_array
from headwater.client.columns.decoding.decoded_columns import RecordColumns
from headwater.client.columns.varint_arrays import Longs

if TYPE_CHECKING:
    import pyarrow


class ArrowPart(NamedTuple):
    """Records of one partition."""

    topic: str
    partition: int
    columns: RecordColumns


@cache
def arrow_schema() -> pyarrow.Schema:
    """What `poll_arrow` returns if nobody says otherwise."""
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
            ("headers", header_type(arrow)),
        ]
    )


@lru_cache(maxsize=16)
def check_arrow_schema(schema: pyarrow.Schema) -> None:
    """Refuse a schema with a column that records do not have, or not in that type."""
    arrow = load_arrow()
    for field in schema:
        if field.name not in _MAKERS:
            nearest = get_close_matches(field.name, _MAKERS, 1, 0.0)[0]
            raise ValueError(f"Records have no column {field.name!r}; the nearest is {nearest!r}.")
        if not _has_type(arrow, field.name, field.type):
            raise ValueError(f"The column {field.name!r} cannot be read as {field.type}.")


def columns_to_arrow(
    parts: Sequence[ArrowPart], schema: pyarrow.Schema | None = None
) -> pyarrow.RecordBatch:
    """All parts, one after the other, as one batch of that schema."""
    arrow = load_arrow()
    if schema is None:
        schema = arrow_schema()
        null_for_none = False
    else:
        check_arrow_schema(schema)
        null_for_none = True
    making = _Making(arrow, parts, [len(part.columns) for part in parts], null_for_none)
    return arrow.RecordBatch.from_arrays(
        [_MAKERS[field.name](making, field.type) for field in schema], schema=schema
    )


class _Making(NamedTuple):
    """What the columns are made of."""

    arrow: ModuleType
    parts: Sequence[ArrowPart]
    counts: list[int]
    null_for_none: bool

    @property
    def all_columns(self) -> list[RecordColumns]:
        return [part.columns for part in self.parts]


def _topics(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    arrow, parts, counts, _ = making
    names = list(dict.fromkeys(part.topic for part in parts))
    if kind == arrow.string() and len(names) == 1:
        return arrow.repeat(text_array(arrow, names)[0], sum(counts))
    numbers = np.repeat(np.array([names.index(part.topic) for part in parts], np.int32), counts)
    column = arrow.DictionaryArray.from_arrays(
        number_array(arrow, numbers), text_array(arrow, names)
    )
    return column.cast(kind) if kind == arrow.string() else column


def _partitions(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    numbers = np.array([part.partition for part in making.parts], np.int32)
    return number_array(making.arrow, np.repeat(numbers, making.counts))


def _offsets(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    return number_array(making.arrow, _joined([columns.offsets for columns in making.all_columns]))


def _timestamps(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    arrow = making.arrow
    times = _joined([columns.timestamps for columns in making.all_columns])
    if not arrow.types.is_timestamp(kind):
        return number_array(arrow, times)
    if kind.unit == "us":
        # A time that does not fit becomes the furthest that does, on whole milliseconds.
        times = np.clip(times, -_MS_OF_US_MAX, _MS_OF_US_MAX) * 1_000
    return number_array(arrow, times).view(kind)


def _timestamp_types(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    runs = [run for columns in making.all_columns for run in columns.runs]
    width = np.int32 if kind == making.arrow.int32() else np.int8
    kinds = np.array([run.timestamp_type for run in runs], width)
    return number_array(making.arrow, np.repeat(kinds, [run.record_count for run in runs]))


def _keys(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    places = [FieldPlaces(c.data, c.key_starts, c.key_sizes) for c in making.all_columns]
    return field_column(making.arrow, places, kind)


def _values(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    places = [FieldPlaces(c.data, c.value_starts, c.value_sizes) for c in making.all_columns]
    return field_column(making.arrow, places, kind)


def _headers(making: _Making, kind: pyarrow.DataType) -> pyarrow.Array:
    column = header_column(making.arrow, making.all_columns, null_for_none=making.null_for_none)
    # What is called element and what may be null differs from one maker of schemas to another.
    return column if column.type.equals(kind) else column.cast(kind)


def _joined(arrays: list[Longs]) -> Longs:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


_MS_OF_US_MAX: Final = (2**63 - 1) // 1_000

_MAKERS: Final[dict[str, Callable[[_Making, pyarrow.DataType], pyarrow.Array]]] = {
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestamp_type": _timestamp_types,
    "timestampType": _timestamp_types,
    "key": _keys,
    "value": _values,
    "headers": _headers,
}


def _has_type(arrow: ModuleType, name: str, kind: pyarrow.DataType) -> bool:
    if name == "timestamp" and arrow.types.is_timestamp(kind):
        return kind.unit in ("ms", "us")
    if name == "headers":
        inner = kind.value_type if arrow.types.is_list(kind) else None
        if inner is None or not arrow.types.is_struct(inner):
            return False
        return [(f.name, f.type) for f in inner] == [
            ("key", arrow.string()),
            ("value", arrow.binary()),
        ]
    allowed = {
        "topic": (arrow.string(), arrow.dictionary(arrow.int32(), arrow.string())),
        "partition": (arrow.int32(),),
        "offset": (arrow.int64(),),
        "timestamp": (arrow.int64(),),
        "key": (arrow.binary(), arrow.binary_view()),
        "value": (arrow.binary(), arrow.binary_view()),
    }.get(name, (arrow.int8(), arrow.int32()))
    return any(kind.equals(each) for each in allowed)
