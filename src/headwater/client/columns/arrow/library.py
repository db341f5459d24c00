"""pyarrow, which only those need who send or read Arrow: imported when the first of them comes.

And the ways from numpy's arrays to Arrow's and back. Where pandas is installed, `pyarrow.array`,
`pyarrow.scalar` and `to_numpy` import it, just in case, which takes half a second; so arrays are
laid over each other's buffers instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwater.base.extras import missing_package

if TYPE_CHECKING:
    import pyarrow


def load_arrow() -> ModuleType:
    """The module `pyarrow`, with its compute functions."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise missing_package("Arrow", "pyarrow", "arrow") from error
    return pyarrow


def binary_array(arrow: ModuleType, data: object, offsets: object, count: int) -> pyarrow.Array:
    """An array of bytes over two buffers of numpy's or Python's; offsets are 32 bits wide."""
    return arrow.Array.from_buffers(
        arrow.binary(), count, [None, arrow.py_buffer(offsets), arrow.py_buffer(data)]
    )


def text_array(arrow: ModuleType, texts: Sequence[str]) -> pyarrow.Array:
    encoded = [text.encode() for text in texts]
    offsets = np.array(list(accumulate(map(len, encoded), initial=0)), np.int32)
    return binary_array(arrow, b"".join(encoded), offsets, len(encoded)).cast(arrow.string())


def number_array(arrow: ModuleType, numbers: npt.NDArray[Any]) -> pyarrow.Array:
    """The same numbers, in the same memory if they stand side by side there."""
    return arrow.Array.from_buffers(
        arrow.from_numpy_dtype(numbers.dtype),
        len(numbers),
        [None, arrow.py_buffer(np.ascontiguousarray(numbers))],
    )


def truth_array(arrow: ModuleType, is_true: npt.NDArray[np.bool_]) -> pyarrow.Array:
    bits = np.packbits(is_true, bitorder="little")
    return arrow.Array.from_buffers(arrow.bool_(), len(is_true), [None, arrow.py_buffer(bits)])


def numbers_of(column: pyarrow.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """What stands in the column's memory, which means nothing where it has null."""
    found = np.frombuffer(column.buffers()[1] or b"", dtype)
    return found[column.offset : column.offset + len(column)]


def nulls_of(column: pyarrow.Array) -> npt.NDArray[np.bool_]:
    """Where it has null."""
    valid = column.buffers()[0]
    if valid is None or not column.null_count:
        return np.zeros(len(column), np.bool_)
    end = column.offset + len(column)
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=end, bitorder="little")
    return np.equal(bits[column.offset :], 0)
