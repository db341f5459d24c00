"""The memory that frames are received into, with large buffers used again once nobody sees them.

A fresh megabyte costs more than receiving into it: the kernel hands out page after page, each
zeroed, and Python zeroes them once more. So large buffers are kept and used again. Whether one may
be is asked of the buffer itself: Python refuses to resize a bytearray while any memoryview of it
lives. A frame therefore belongs to whoever holds a view of it, for as long as they do, with nothing
to give back and nothing to forget.

What is kept is bounded. Frames too large to be worth keeping are memory maps of their own: those
take no memory until bytes arrive, and return it at once when the last view goes.
"""

from __future__ import annotations

import mmap

SCRATCH_SIZE = 1024 * 1024
SMALL_SCRATCH_SIZE = 16 * 1024
LARGE_SIZE = 256 * 1024
POOLED_MIN = 64 * 1024
KEPT_SIZE_MAX = 2 * 1024 * 1024
KEPT_BYTES_MAX = 16 * 1024 * 1024


class FrameMemory:
    """Gives out buffers for frames; for one event loop."""

    __slots__ = ("_kept", "_kept_bytes", "scratch", "scratch_bytes", "small_scratch")

    def __init__(self) -> None:
        self.scratch_bytes = bytearray(SCRATCH_SIZE)
        self.scratch = memoryview(self.scratch_bytes)
        self.small_scratch = self.scratch[:SMALL_SCRATCH_SIZE]
        #: By size class, which is the exponent of a power of two: all buffers, in use or not.
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """A writable view of `size` bytes of whatever content, in memory that nobody else sees."""
        if size < POOLED_MIN:
            return memoryview(bytearray(size))
        if size > KEPT_SIZE_MAX:
            return memoryview(mmap.mmap(-1, size))
        size_class = (size - 1).bit_length()
        buffers = self._kept.setdefault(size_class, [])
        # The one given out last is the one most likely to be in the processor's caches still.
        for index in range(len(buffers) - 1, -1, -1):
            buffer = buffers[index]
            if _is_free(buffer):
                if index != len(buffers) - 1:
                    del buffers[index]
                    buffers.append(buffer)
                return memoryview(buffer)[:size]
        if self._kept_bytes + (1 << size_class) > KEPT_BYTES_MAX:
            return memoryview(bytearray(size))
        buffer = bytearray(1 << size_class)
        self._kept_bytes += len(buffer)
        buffers.append(buffer)
        return memoryview(buffer)[:size]


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of it is left; the attempt to resize it leaves it as it was."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
