"""The real disk: `headwater.storage.disk.files` describes the contract that these classes keep."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from headwater.storage.disk.file_lock import lock_descriptor
from headwater.storage.disk.spare_descriptors import SpareDescriptors

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")


def _find_fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux's fallocate; what Python offers of it would make the file longer."""
    function = getattr(ctypes.CDLL(None), "fallocate64", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return cast("Callable[[int, int, int, int], int]", function)


_FALLOC_FL_KEEP_SIZE = 1
_fallocate = _find_fallocate()


class DiskFile:
    """A `File` on a descriptor. Errors carry the path, which the bare system calls do not."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def read_at(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, position)
            if len(data) == size or not data:
                return data
            # Short: the end of the file, or the kernel's limit of 2 GiB for a single call.
            parts = [data]
            filled = len(data)
            while filled < size:
                data = os.pread(self._descriptor, size - filled, position + filled)
                if not data:
                    break
                parts.append(data)
                filled += len(data)
            return b"".join(parts)
        except OSError as error:
            error.filename = self.path
            raise

    def write_at(self, position: int, data: Buffer) -> None:
        try:
            written = os.pwrite(self._descriptor, data, position)
            if written != len(data):
                self._write_rest(position, memoryview(data).cast("B"), written)
        except OSError as error:
            error.filename = self.path
            raise

    def _write_rest(self, position: int, view: memoryview, written: int) -> None:
        while written < len(view):
            step = os.pwrite(self._descriptor, view[written:], position + written)
            if step == 0:
                raise OSError(errno.EIO, "the disk accepts no more bytes and gives no reason")
            written += step

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            error.filename = self.path
            raise

    def reserve(self, size: int) -> None:
        # It is a wish: a disk without room will say so when bytes are written.
        if _fallocate is not None:
            _fallocate(self.fileno(), _FALLOC_FL_KEEP_SIZE, 0, size)

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            error.filename = self.path
            raise

    def sync(self) -> None:
        # fdatasync skips the modification time but not the length, which is needed to read back.
        try:
            if sys.platform == "linux":
                os.fdatasync(self.fileno())
            else:
                os.fsync(self.fileno())
        except OSError as error:
            error.filename = self.path
            raise

    def fileno(self) -> int:
        if self._descriptor < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return self._descriptor

    def close(self) -> None:
        # The number is forgotten before the call: it is free for reuse even if close reports an
        # error, and closing it twice could close somebody else's file.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # The handle cache lets go of a file that a thread may be using; the last one to hold it
        # closes it. Nothing is lost with an error here: only sync says that bytes are safe.
        with contextlib.suppress(OSError):
            self.close()


class DiskMapping:
    """A `Mapping` by mmap. Python duplicates the descriptor for it, so it counts as one."""

    __slots__ = ("_map", "_view", "path")

    def __init__(self, path: str, mapped: mmap.mmap | None) -> None:
        self.path = path
        self._map = mapped
        self._view: memoryview | None = memoryview(b"" if mapped is None else mapped)

    @property
    def view(self) -> memoryview:
        if self._view is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return self._view

    def close(self) -> None:
        view, self._view = self._view, None
        mapped, self._map = self._map, None
        if view is None:
            return
        try:
            view.release()
            if mapped is not None:
                mapped.close()
        except BufferError:
            # Somebody still reads a slice of it; unmapping now would pull the memory from under
            # them. The map goes away with the last slice.
            return


class DiskLock:
    """A `Lock` on an open descriptor of the locked file."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class DiskFiles:
    """The `FileSystem` of the operating system."""

    def __init__(self, spare: SpareDescriptors | None = None) -> None:
        """`spare` descriptors are used where there are no others."""
        self._spare = spare

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDWR
        return DiskFile(path, self._opening(lambda: os.open(path, flags, 0o644)))

    def map(self, path: str) -> DiskMapping:
        return self._opening(lambda: self._map(path))

    def _opening(self, open_file: Callable[[], T]) -> T:
        return open_file() if self._spare is None else self._spare.opening(open_file)

    def _map(self, path: str) -> DiskMapping:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # An empty file cannot be mapped; its view is empty all the same.
            if os.fstat(descriptor).st_size == 0:
                return DiskMapping(path, None)
            return DiskMapping(path, mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._opening(lambda: os.listdir(path)))

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        descriptor = self._opening(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        try:
            os.fsync(descriptor)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def free_bytes(self, path: str) -> int:
        disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize

    def total_bytes(self, path: str) -> int:
        disk = os.statvfs(path)
        return disk.f_blocks * disk.f_frsize

    def lock(self, path: str) -> DiskLock:
        descriptor = self._opening(lambda: os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        try:
            lock_descriptor(descriptor)
        except OSError as error:
            os.close(descriptor)
            error.filename = path
            raise
        return DiskLock(descriptor)
