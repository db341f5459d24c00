"""Rows that have the same key: found by numbering keys, whatever their types, null equal to null.

Key columns are taken apart until only plain ones are left (a window is a start and an end), each is
numbered by its distinct values, and the numbers of a row are made one. So the cost is one pass over
the key columns, and nothing is compared row by row in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.pipeline.lake.errors import LakeSchemaError

Codes: TypeAlias = npt.NDArray[np.int64]


def key_codes(keys: pa.Table) -> Codes:
    """A number for each row: two rows have the same if, and only if, they have the same key."""
    codes = np.zeros(len(keys), np.int64)
    for name in keys.column_names:
        column = keys.column(name)
        array = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
        for plain in _plain(name, array):
            encoded = plain.dictionary_encode(null_encoding="encode")
            numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            # Made small again after each column, so that no product can overflow.
            _, inverse = np.unique(codes * len(encoded.dictionary) + numbers, return_inverse=True)
            codes = inverse.astype(np.int64).reshape(-1)
    return codes


def first_repeated(keys: pa.Table) -> int | None:
    """The number of a row whose key another row before it has."""
    codes = key_codes(keys)
    _, firsts = np.unique(codes, return_index=True)
    if len(firsts) == len(codes):
        return None
    is_first = np.zeros(len(codes), np.bool_)
    is_first[firsts] = True
    return int(np.flatnonzero(~is_first)[0])


def matching(wanted: pa.Table, among: Sequence[pa.Table]) -> list[npt.NDArray[np.bool_]]:
    """For each table, which of its rows have a key that `wanted` has."""
    codes = key_codes(pa.concat_tables([wanted, *among]))
    found = np.isin(codes[len(wanted) :], codes[: len(wanted)])
    bounds = np.cumsum([len(table) for table in among])
    return np.split(found, bounds)[:-1]


def _plain(name: str, array: pa.Array) -> Iterator[pa.Array]:
    kind = array.type
    if pa.types.is_struct(kind):
        yield array.is_null()
        for part in array.flatten():
            yield from _plain(name, part)
    elif pa.types.is_nested(kind):
        raise LakeSchemaError(f"The column {name!r} holds lists or maps, and cannot be a key.")
    else:
        yield array
