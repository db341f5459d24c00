"""Variable-length numbers written many at a time: rows of numbers to rows of bytes.

Every number of a row gets as many columns of bytes as the longest of its column needs. Where all
rows are equally long, the table is the result; where not, the cells that are none are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.client.columns.varint_arrays import Bytes, Longs

Raws: TypeAlias = npt.NDArray[np.uint64]

#: What is the same in all plain records, as the byte that is written.
ATTRIBUTES: Final = 0
NULL: Final = 1
NO_DELTA: Final = 0
NO_HEADERS: Final = 0

_CONTINUED = 0x80


class Varints(NamedTuple):
    """Numbers in the form in which they are written, and how many bytes each takes."""

    raw: Raws
    widths: Longs

    @classmethod
    def of(cls, numbers: Longs) -> Varints:
        raw = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        widths = np.ones(len(raw), np.int64)
        largest = int(raw.max()) if len(raw) else 0
        bits = 7
        while largest >> bits:
            widths += raw >= np.uint64(1 << bits)
            bits += 7
        return cls(raw, widths)


def write_rows(columns: Sequence[Varints | int], row_count: int) -> tuple[Bytes, Longs]:
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
        raw, widths = column
        shortest = int(widths.min()) if row_count else 0
        longest = int(widths.max()) if row_count else 0
        for index in range(longest):
            byte = (raw >> np.uint64(7 * index)).astype(np.uint8)
            byte &= _CONTINUED - 1
            if index + 1 < shortest:
                byte |= _CONTINUED
            elif index + 1 < longest:
                byte |= (widths > index + 1).view(np.uint8) << 7
            cells.append(byte)
            masks.append(None if index < shortest else widths > index)
    table = np.empty((row_count, len(cells)), np.uint8)
    for index, cell in enumerate(cells):
        table[:, index] = cell
    if all(mask is None for mask in masks):
        return table.ravel(), np.arange(row_count + 1, dtype=np.int64) * len(cells)
    is_kept = np.ones(table.shape, np.bool_)
    row_sizes = np.full(row_count, sum(mask is None for mask in masks), np.int64)
    for index, mask in enumerate(masks):
        if mask is not None:
            is_kept[:, index] = mask
            row_sizes += mask
    return table[is_kept], np.concatenate((np.zeros(1, np.int64), np.cumsum(row_sizes)))
