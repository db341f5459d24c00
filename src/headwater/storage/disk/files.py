"""The one seam between the storage engine and a disk.

Everything under `headwater.storage` that touches a file does so through a `FileSystem`. There are
two: `DiskFiles` is the operating system's; `headwater.sim.disk.faulty_disk` has one in memory
that forgets and tears whatever was not made durable. The seam is narrow on purpose: each operation
on it is one whose effect on durability can be stated in a sentence.

The contract that both keep:

- `File.sync` makes the bytes and the length of a file durable, and nothing else. The name of a new
  file is durable only after `sync_dir` of the directory that holds it.
- `rename` replaces its target atomically: a crash leaves the old state or the new one, never
  neither. Which of them is open until `sync_dir` of the directory (of both, if they differ).
- `write_at` writes everything or raises. A write that raises may have left a part of its bytes
  behind, and may have made the file longer: whoever wrote must truncate or overwrite.
- After `sync` has raised, what was written since the sync before it may be lost even though it
  can still be read back: a second sync that succeeds proves nothing. Give the directory up.
- `truncate` is durable after `sync` and not before: a crash may bring back what was cut, even
  behind bytes that were written after the cut.

Paths are plain strings, joined with "/" and never normalised.
"""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

from headwater.storage.disk.disk_files import Buffer, DiskFiles

__all__ = [
    "Buffer",
    "DiskFiles",
    "File",
    "FileRegion",
    "FileSystem",
    "Lock",
    "Mapping",
    "read_bytes",
    "write_atomically",
]

TEMPORARY_SUFFIX = ".tmp"


class File(Protocol):
    """An open file addressed by position: there is no cursor, so readers never disturb writers."""

    path: str

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only where the file ends."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of `data`; bytes between the old end and `position` read as zeros."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size`, or extend it with zeros."""

    def reserve(self, size: int) -> None:
        """Let the disk find room for `size` bytes in advance, if it can; the length stays.

        Truncation, to the present length too, gives back what was not written.
        """

    def size(self) -> int: ...

    def sync(self) -> None:
        """Make content and length durable."""

    def fileno(self) -> int:
        """The descriptor, for sendfile; a file without one raises io.UnsupportedOperation."""

    def close(self) -> None:
        """Release the descriptor: once done, any other use raises OSError.

        Dropping the last reference to a file closes it too.
        """


class Mapping(Protocol):
    """A read-only view of a file as long as it was when mapped.

    Reading pages that a later truncation cut off ends the process with SIGBUS: close a mapping
    before truncating its file.
    """

    @property
    def view(self) -> memoryview: ...

    def close(self) -> None: ...


class Lock(Protocol):
    """An exclusive lock on a path, held until released or until the process ends."""

    def release(self) -> None: ...


class FileSystem(Protocol):
    """The operations on names, and the way to open files."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; an absent file is created empty or is an error."""

    def map(self, path: str) -> Mapping: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """Make a directory and its missing parents; one that exists is fine."""

    def rename(self, source: str, target: str) -> None:
        """Atomically replace `target`, a file or an empty directory, by `source`."""

    def remove(self, path: str) -> None:
        """Remove a file, never a directory."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; not atomic, and absence is an error."""

    def sync_dir(self, path: str) -> None:
        """Make creations, renames and removals of names in this directory durable."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def free_bytes(self, path: str) -> int:
        """Space left for new data on the disk that holds `path`."""

    def total_bytes(self, path: str) -> int:
        """The size of the disk that holds `path`."""

    def lock(self, path: str) -> Lock:
        """Lock exclusively, creating the file; BlockingIOError at once if another has it."""


class FileRegion(NamedTuple):
    """A stretch of a file that can be read, or sent without copying it through this process."""

    file: File
    position: int
    size: int

    def read(self) -> bytes:
        """The bytes; fewer than `size` only if the file was truncated in the meantime."""
        return self.file.read_at(self.position, self.size)


def read_bytes(files: FileSystem, path: str) -> bytes:
    """All of a file."""
    file = files.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def write_atomically(files: FileSystem, path: str, data: Buffer) -> None:
    """Replace a file durably: after a crash it holds the old bytes or the new, never a mix.

    The bytes must be durable before the name points at them, and the name before this returns.
    A temporary file left behind by a crash or an error is harmless: the next write empties it.
    """
    temporary = path + TEMPORARY_SUFFIX
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.sync_dir(os.path.dirname(path) or ".")
