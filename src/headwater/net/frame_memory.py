"""The memory that the connections of an event loop receive frames into.

What is received at once goes to a scratch that all of them share, since each is done with it before
the next one receives. A frame that is larger than what came at once gets a buffer of its own, which
belongs to whoever holds a view of it: see `ReusedMemory`.
"""

from __future__ import annotations

from typing import Final

from headwater.base.reused_memory import Kept, ReusedMemory

SCRATCH_SIZE: Final = 1024 * 1024
"""What is received at once where frames are small: many frames for one system call."""
SMALL_SCRATCH_SIZE: Final = 16 * 1024
"""What is received at once where a large frame is expected: most of it goes to its own place."""

#: Many producers send to a broker, each no more than its batches.
KEPT_OF_REQUESTS: Final = Kept(2 * 1024 * 1024, 16 * 1024 * 1024)
#: An answer to a fetch has a megabyte for each partition, again and again.
KEPT_OF_ANSWERS: Final = Kept(16 * 1024 * 1024, 64 * 1024 * 1024)


class FrameMemory(ReusedMemory):
    """Scratch and buffers; for one event loop."""

    __slots__ = ("scratch", "scratch_bytes", "small_scratch")

    def __init__(self, limits: Kept = KEPT_OF_REQUESTS) -> None:
        super().__init__(limits)
        self.scratch_bytes = bytearray(SCRATCH_SIZE)
        self.scratch = memoryview(self.scratch_bytes)
        self.small_scratch = self.scratch[:SMALL_SCRATCH_SIZE]
