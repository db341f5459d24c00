"""Variable-length numbers written many at a time: rows of numbers to rows of bytes.

Every number of a row gets as many columns of bytes as the longest of its column needs. Where all
rows are equally long, the table is the result; where not, the cells that are none are left out.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.client.columns.varint_arrays import Bytes, Longs

Raws: TypeAlias = npt.NDArray[np.uint64]


def zigzag(numbers: Longs) -> Raws:
    """Signed numbers in the form in which they are written."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def widths(raw: Raws) -> Longs:
    """How many bytes each number takes."""
    found = np.ones(len(raw), np.int64)
    largest = int(raw.max()) if len(raw) else 0
    bits = 7
    while largest >> bits:
        found += raw >= np.uint64(1 << bits)
        bits += 7
    return found


def write_rows(columns: Sequence[Raws | int], row_count: int) -> tuple[Bytes, Longs]:
    """All rows one after the other, and where each begins and the last one ends.

    A column is one number a row, or a byte that all rows have in common.
    """
    cells: list[Bytes | int] = []
    masks: list[npt.NDArray[np.bool_] | None] = []
    for column in columns:
        if isinstance(column, int):
            cells.append(column)
            masks.append(None)
            continue
        sizes = widths(column)
        shortest = int(sizes.min()) if row_count else 0
        for index in range(int(sizes.max()) if row_count else 0):
            byte = ((column >> np.uint64(7 * index)) & np.uint64(0x7F)).astype(np.uint8)
            byte |= (sizes > index + 1).astype(np.uint8) << 7
            cells.append(byte)
            masks.append(None if index < shortest else sizes > index)
    table = np.empty((row_count, len(cells)), np.uint8)
    for index, cell in enumerate(cells):
        table[:, index] = cell
    if all(mask is None for mask in masks):
        return table.ravel(), np.arange(row_count + 1, dtype=np.int64) * len(cells)
    is_kept = np.ones(table.shape, np.bool_)
    for index, mask in enumerate(masks):
        if mask is not None:
            is_kept[:, index] = mask
    ends = np.cumsum(np.count_nonzero(is_kept, axis=1))
    return table[is_kept], np.concatenate((np.zeros(1, np.int64), ends))
