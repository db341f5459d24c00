"""Variable-length numbers, many at a time: read at an array of positions, or written from an array.

Reading never leaves the data: a position beyond it reads the last byte, and whoever reads compares
where the fields of a record end with where the record ends, which such a position cannot survive.
What is read stays in zigzag form, so that a caller can see signs before they are taken away.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Longs: TypeAlias = npt.NDArray[np.int64]

VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10

_CONTINUED: Final = 0x80
_LOW_BITS: Final = 0x7F


class MalformedNumberError(Exception):
    """One of the numbers is too long or too large; which one is for a slower reader to tell."""


def read_varints(data: Bytes, positions: Longs) -> tuple[Longs, Longs]:
    """The 32-bit numbers at these positions, still in zigzag form, and the positions after them."""
    low = data.take(positions, mode="clip")
    if not len(low) or low.max() < _CONTINUED:
        return low.astype(np.int64), positions + 1
    high = data.take(positions + 1, mode="clip")
    more = low >> 7
    if (high & (more << 7)).any():
        long_raw, ends = _read_long_numbers(data, positions, VARINT_BYTES_MAX)
        if (long_raw >> np.uint64(32)).any():
            raise MalformedNumberError
        return long_raw.astype(np.int64), ends
    raw = (low & _LOW_BITS).astype(np.int64)
    raw += (high * more).astype(np.int64) << 7
    return raw, positions + more + 1


def read_varlongs(data: Bytes, positions: Longs) -> tuple[npt.NDArray[np.uint64], Longs]:
    """The 64-bit numbers at these positions, still in zigzag form, and the positions after them."""
    low = data.take(positions, mode="clip")
    if not len(low) or low.max() < _CONTINUED:
        return low.astype(np.uint64), positions + 1
    return _read_long_numbers(data, positions, VARLONG_BYTES_MAX)


def _read_long_numbers(
    data: Bytes, positions: Longs, bytes_max: int
) -> tuple[npt.NDArray[np.uint64], Longs]:
    raw = np.zeros(len(positions), np.uint64)
    ends = positions.copy()
    continued = np.ones(len(positions), np.bool_)
    for index in range(bytes_max):
        byte = data.take(positions + index, mode="clip") * continued
        if index == VARLONG_BYTES_MAX - 1 and (byte > 1).any():
            raise MalformedNumberError
        raw |= (byte & _LOW_BITS).astype(np.uint64) << np.uint64(7 * index)
        ends += continued
        continued = byte >= _CONTINUED
        if not continued.any():
            return raw, ends
    raise MalformedNumberError


def read_sizes(data: Bytes, positions: Longs) -> tuple[Longs, Longs]:
    """The sizes of fields, -1 for null, and where the fields themselves begin."""
    raw, starts = read_varints(data, positions)
    negative = raw & 1
    if (negative & (raw > 1)).any():
        raise MalformedNumberError
    return (raw >> 1) - negative, starts


def unzigzag(raw: npt.NDArray[np.uint64]) -> Longs:
    """The signed numbers that the zigzag forms stand for."""
    one = np.uint64(1)
    return (raw >> one).view(np.int64) ^ -(raw & one).view(np.int64)
