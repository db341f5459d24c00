"""Large buffers that are used again once nobody sees them.

A fresh megabyte costs page faults and zeroing, twice when Python zeroes it too. So large buffers
are kept and used again. Whether one may be is asked of the buffer itself: Python refuses to resize
a bytearray while any memoryview of it lives. A buffer therefore belongs to whoever holds a view of
it, for as long as they do, with nothing to give back and nothing to forget.

What is kept is bounded. Buffers that are too large to be kept are memory maps of their own, on huge
pages where there are any. They take no memory until something is written to them, and return it
with the last view.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import Final, NamedTuple

#: Smaller ones are not worth it.
KEPT_SIZE_MIN: Final = 64 * 1024


class Kept(NamedTuple):
    """How large a buffer may be to be kept, and how much is kept in all."""

    size_max: int
    bytes_max: int


class ReusedMemory:
    """Gives out buffers; of one thread."""

    __slots__ = ("_kept", "_kept_bytes", "_limits")

    def __init__(self, limits: Kept) -> None:
        self._limits = limits
        #: All buffers that are kept, in use or not, by capacity, the one last asked for at the end.
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """A writable view of `size` bytes of whatever content, in memory that nobody else sees."""
        if size < KEPT_SIZE_MIN:
            return memoryview(bytearray(size))
        if size > self._limits.size_max:
            return memoryview(_map(size))
        # A quarter of a power of two is wasted at most, so that buffers fit many sizes.
        step = 1 << ((size - 1).bit_length() - 3)
        capacity = (size + step - 1) // step * step
        buffers = self._kept.pop(capacity, None) or []
        self._kept[capacity] = buffers
        # The one given out last is the one most likely to be in the processor's caches still.
        for index in range(len(buffers) - 1, -1, -1):
            buffer = buffers[index]
            if _is_free(buffer):
                if index != len(buffers) - 1:
                    del buffers[index]
                    buffers.append(buffer)
                return memoryview(buffer)[:size]
        if not self._make_room(capacity):
            return memoryview(bytearray(size))
        buffer = bytearray(capacity)
        self._kept_bytes += capacity
        buffers.append(buffer)
        return memoryview(buffer)[:size]

    def _make_room(self, capacity: int) -> bool:
        """Let go of free buffers of the capacity that was not asked for longest."""
        while self._kept_bytes + capacity > self._limits.bytes_max:
            oldest = next(iter(self._kept))
            buffers = self._kept[oldest]
            if not buffers:
                del self._kept[oldest]
            elif oldest != capacity and _is_free(buffers[0]):
                del buffers[0]
                self._kept_bytes -= oldest
            else:
                return False
        return True


def _map(size: int) -> mmap.mmap:
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Without huge pages in the kernel this is an error, and no loss.
        with contextlib.suppress(OSError):
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return mapped


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of it is left; the attempt to resize it leaves it as it was."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
