"""Fields where they are: an Arrow array of views of the bytes that were fetched.

A view is sixteen bytes. The first four are the field's size. A field of up to twelve bytes stands
in the rest itself; of a longer one there are the first four bytes, by which views are compared, the
number of the buffer that has it, and its place there. The array keeps those buffers alive.

What only comparisons need, the first bytes of long fields and zeros after short ones, is left out
of views that are made to be copied from: reading a byte of each field costs as much as copying it.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from headwater.client.columns.varint_arrays import Bytes, Longs
from headwater.wire.records import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow

_VIEW_BYTES: Final = 16
_INLINE_BYTES: Final = 12
_PREFIX_BYTES: Final = 4


class FieldPlaces(NamedTuple):
    """Where one field of each of some records stands: a size of -1 is null."""

    data: Buffer
    starts: Longs
    sizes: Longs


def field_views(arrow: ModuleType, parts: Sequence[FieldPlaces]) -> pyarrow.Array:
    """The fields of all parts where they are, as `binary_view`."""
    return _views(arrow, parts, are_compared=True)


def field_copies(arrow: ModuleType, parts: Sequence[FieldPlaces]) -> pyarrow.Array:
    """The fields of all parts one after the other, as `binary`."""
    return _views(arrow, parts, are_compared=False).cast(arrow.binary())


def _views(arrow: ModuleType, parts: Sequence[FieldPlaces], *, are_compared: bool) -> pyarrow.Array:
    sizes = np.concatenate([part.sizes for part in parts])
    buffers: list[Buffer] = []
    views = np.zeros((len(sizes), _VIEW_BYTES // 4), np.int32)
    views[:, 0] = np.maximum(sizes, 0)
    first = 0
    for part in parts:
        last = first + len(part.sizes)
        if not buffers or buffers[-1] is not part.data:
            buffers.append(part.data)
        _point(views[first:last], part, len(buffers) - 1, are_compared)
        first = last
    validity = None
    is_there = sizes >= 0
    if not is_there.all():
        validity = arrow.py_buffer(np.packbits(is_there, bitorder="little"))
    return arrow.Array.from_buffers(
        arrow.binary_view(),
        len(sizes),
        [validity, arrow.py_buffer(views), *map(arrow.py_buffer, buffers)],
    )


def _point(
    views: npt.NDArray[np.int32], part: FieldPlaces, buffer_number: int, are_compared: bool
) -> None:
    """Write the views of a part, which have their sizes already."""
    data: Bytes = np.frombuffer(part.data, np.uint8)
    content = views.view(np.uint8)[:, 4:]
    is_short = part.sizes <= _INLINE_BYTES
    short = slice(None) if is_short.all() else np.flatnonzero(is_short)
    long = slice(None) if not is_short.any() else np.flatnonzero(~is_short)
    if is_short.any():
        fields = _read(data, part.starts[short], _INLINE_BYTES)
        if are_compared:
            fields *= np.arange(_INLINE_BYTES) < part.sizes[short, None]
        content[short] = fields
    if not is_short.all():
        if are_compared:
            content[long, :_PREFIX_BYTES] = _read(data, part.starts[long], _PREFIX_BYTES)
        views[long, 2] = buffer_number
        views[long, 3] = part.starts[long]


def _read(data: Bytes, starts: Longs, count: int) -> Bytes:
    """So many bytes from each of these places on; after the end of the data there is anything."""
    if len(data) < count:
        data = np.concatenate((data, np.zeros(count - len(data), np.uint8)))
    last = len(data) - count
    # Elements that overlap, each one byte further than the one before it.
    elements: Any = np.ndarray(last + 1, np.dtype((np.void, count)), data, strides=1)
    found: Bytes = elements[np.minimum(starts, last)].view(np.uint8).reshape(-1, count)
    for index in np.flatnonzero(starts > last).tolist():
        left = data[starts[index] :]
        found[index, : len(left)] = left
    return found
