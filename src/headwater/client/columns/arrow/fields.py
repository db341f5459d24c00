"""Keys, values and headers of records as Arrow arrays, copied by Arrow's own code or not at all.

They lie scattered over the bytes that were fetched. An array of views tells where (`field_views`),
and its cast to `binary` copies the fields of all parts, once, and nothing else.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from headwater.client.columns.arrow.field_views import FieldPlaces, field_copies, field_views
from headwater.client.columns.arrow.library import number_array, text_array, truth_array
from headwater.client.columns.decoding.decoded_columns import RecordColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow


def field_column(
    arrow: ModuleType, parts: Sequence[FieldPlaces], kind: pyarrow.DataType
) -> pyarrow.Array:
    """The keys or the values of all parts: as `binary` copies, as `binary_view` where they are."""
    if all((part.sizes < 0).all() for part in parts):
        return arrow.nulls(sum(len(part.sizes) for part in parts), kind)
    is_view = kind.equals(arrow.binary_view())
    return field_views(arrow, parts) if is_view else field_copies(arrow, parts)


def header_type(arrow: ModuleType) -> pyarrow.DataType:
    return arrow.list_(arrow.struct([("key", arrow.string()), ("value", arrow.binary())]))


def header_column(
    arrow: ModuleType, all_columns: Sequence[RecordColumns], *, null_for_none: bool
) -> pyarrow.Array:
    """The headers of all parts; a record without any has an empty list, or null."""
    if all(columns.headers is None for columns in all_columns):
        return _no_headers(arrow, sum(map(len, all_columns)), null_for_none)
    return _one_array(arrow, [_headers(arrow, columns, null_for_none) for columns in all_columns])


def _one_array(arrow: ModuleType, arrays: list[pyarrow.Array]) -> pyarrow.Array:
    return arrays[0] if len(arrays) == 1 else arrow.concat_arrays(arrays)


def _no_headers(arrow: ModuleType, count: int, null_for_none: bool) -> pyarrow.Array:
    kind = header_type(arrow)
    if null_for_none:
        return arrow.nulls(count, kind)
    bounds = number_array(arrow, np.zeros(count + 1, np.int32))
    return arrow.ListArray.from_arrays(bounds, arrow.nulls(0, kind.value_type))


def _headers(arrow: ModuleType, columns: RecordColumns, null_for_none: bool) -> pyarrow.Array:
    headers = columns.headers
    if headers is None:
        return _no_headers(arrow, len(columns), null_for_none)
    first, last = int(headers.firsts[0]), int(headers.firsts[-1])
    own = slice(first, last)
    data = columns.data
    key_places = FieldPlaces(data, headers.key_starts[own], headers.key_sizes[own])
    value_places = FieldPlaces(data, headers.value_starts[own], headers.value_sizes[own])
    keys = field_column(arrow, [key_places], arrow.binary())
    values = field_column(arrow, [value_places], arrow.binary())
    structs = arrow.StructArray.from_arrays([_texts(arrow, keys), values], names=["key", "value"])
    bounds = number_array(arrow, (headers.firsts - first).astype(np.int32))
    mask = truth_array(arrow, np.diff(headers.firsts) == 0) if null_for_none else None
    return arrow.ListArray.from_arrays(bounds, structs, mask=mask)


def _texts(arrow: ModuleType, keys: pyarrow.Array) -> pyarrow.Array:
    """Names of headers; Arrow has no place for bytes in a text that are not UTF-8."""
    try:
        return keys.cast(arrow.string())
    except arrow.ArrowInvalid:
        names = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
        return text_array(arrow, names)
