"""pyarrow, which only those need who send or read Arrow: imported when the first of them comes."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow


def load_arrow() -> ModuleType:
    """The module `pyarrow`, with its compute functions."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise ImportError(
            "Sending and reading Arrow batches needs pyarrow: pip install 'headwater[arrow]'."
        ) from error
    return pyarrow


def binary_array(arrow: ModuleType, data: object, offsets: object, count: int) -> pyarrow.Array:
    """An array of bytes over two buffers of numpy's or Python's; offsets are 32 bits wide."""
    return arrow.Array.from_buffers(
        arrow.binary(), count, [None, arrow.py_buffer(offsets), arrow.py_buffer(data)]
    )
