"""The seam between a spool and a disk: the few operations it needs, and the real ones.

It is a part of the seam that the broker's storage has, with the same contract, so that the
simulated disk stands in for this one too: `sync` makes the bytes and the length of a file durable,
the name of a new file is durable after `sync_dir`, and after a `sync` that failed nothing written
since the last one is certain.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from typing import Protocol

Buffer = bytes | bytearray | memoryview

# Where there is a call that leaves out the modification time, it is enough and quicker.
_sync_content = os.fdatasync if sys.platform == "linux" else os.fsync


class SpoolFile(Protocol):
    """An open file, addressed by position; dropping the last reference to it closes it."""

    def read_at(self, position: int, size: int) -> bytes: ...

    def write_at(self, position: int, data: Buffer) -> None: ...

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class SpoolLock(Protocol):
    def release(self) -> None: ...


class SpoolFiles(Protocol):
    def open(self, path: str, *, create: bool = False) -> SpoolFile: ...

    def exists(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]: ...

    def make_dir(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def lock(self, path: str) -> SpoolLock:
        """Lock exclusively, creating the file; BlockingIOError at once if another has it."""
        ...


class LocalFile:
    """A `SpoolFile` on a descriptor."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_at(self, position: int, size: int) -> bytes:
        parts = []
        while size > 0 and (data := os.pread(self._descriptor, size, position)):
            parts.append(data)
            position += len(data)
            size -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write_at(self, position: int, data: Buffer) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                step = os.pwrite(self._descriptor, rest, position + written)
                if step == 0:
                    raise OSError(errno.EIO, "the disk accepts no more bytes and gives no reason")
                written += step
                rest = rest[step:]

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        _sync_content(self._descriptor)

    def close(self) -> None:
        # Forgotten first: closing a number twice could close somebody else's file.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


class LocalLock:
    """A lock that the operating system lets go of when the process ends, however it ends."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class LocalFiles:
    """The operating system's files."""

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, 0o644))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> LocalLock:
        return LocalLock(path)


def make_directory(files: SpoolFiles, path: str) -> None:
    """Make a directory and its missing parents, durably."""
    missing = []
    holder = path
    while holder and not files.exists(holder):
        missing.append(holder)
        holder = os.path.dirname(holder)
    files.make_dir(path)
    for made in reversed(missing):
        files.sync_dir(os.path.dirname(made) or ".")
