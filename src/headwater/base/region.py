"""A stretch of a file that goes to a peer without passing through this process.

A message is written as a sequence of parts, and a part is bytes or a `Region`. Storage's
`FileRegion` is one; the layers that encode and send stand below storage, and only say here what
they need of it. A region stays cheap while it waits for a slow peer: three words, whatever its
size.
"""

from typing import Protocol

Buffer = bytes | bytearray | memoryview


class RegionFile(Protocol):
    """The file of a region: one with `pin` and `unpin` is kept open by them while it is sent."""

    def fileno(self) -> int:
        """The descriptor; a file that has none raises io.UnsupportedOperation."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only where the file ends."""


class Region(Protocol):
    """Bytes `position` to `position + size` of a file."""

    @property
    def file(self) -> RegionFile: ...

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...

    def read(self) -> bytes:
        """The bytes; fewer than `size` only if the file was truncated in the meantime."""


Part = bytes | bytearray | memoryview | Region
#: What a message may hold as records; a tuple has a header and, at its end, the bulk of them.
Records = Buffer | Region | tuple[Buffer, ...]
