"""Keys, values and headers of records as Arrow arrays, copied by Arrow's own code.

They lie scattered over the bytes that were fetched. An Arrow array is laid over those bytes in
which the fields and the gaps between them take turns; `take` of every second element then copies
the fields, and nothing else.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.client.columns.arrow_library import number_array, text_array, truth_array
from headwater.client.columns.decoded_columns import RecordColumns
from headwater.client.columns.varint_arrays import Longs
from headwater.wire.records import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow


class FieldPlaces(NamedTuple):
    """Where one field of each of some records stands: the places grow, a size of -1 is null."""

    data: Buffer
    starts: Longs
    sizes: Longs


def field_column(arrow: ModuleType, parts: Sequence[FieldPlaces]) -> pyarrow.Array:
    """The keys or the values of all parts; to make null of each part would cost more."""
    if all((part.sizes < 0).all() for part in parts):
        return arrow.nulls(sum(len(part.sizes) for part in parts), arrow.binary())
    return _one_array(arrow, [_fields(arrow, part) for part in _united(parts)])


def _united(parts: Sequence[FieldPlaces]) -> list[FieldPlaces]:
    """Parts that follow one another in the same bytes as one, so that they are copied once."""
    groups: list[list[FieldPlaces]] = []
    for part in parts:
        before = groups[-1][-1] if groups else None
        if (
            before is not None
            and before.data is part.data
            and len(before.starts)
            and len(part.starts)
            and before.starts[-1] <= part.starts[0]
        ):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [
        group[0]
        if len(group) == 1
        else FieldPlaces(
            group[0].data,
            np.concatenate([part.starts for part in group]),
            np.concatenate([part.sizes for part in group]),
        )
        for group in groups
    ]


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


def _fields(arrow: ModuleType, places: FieldPlaces) -> pyarrow.Array:
    data, starts, sizes = places
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
    return scattered.take(number_array(arrow, np.arange(1, 2 * count, 2, dtype=np.int32)))


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
    keys = _fields(arrow, FieldPlaces(data, headers.key_starts[own], headers.key_sizes[own]))
    values = _fields(arrow, FieldPlaces(data, headers.value_starts[own], headers.value_sizes[own]))
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
