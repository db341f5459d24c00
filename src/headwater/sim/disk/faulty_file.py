"""What the simulated disk gives out: open files, mappings and locks."""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING

from headwater.base.checks import check
from headwater.sim.disk.directory_tree import os_error
from headwater.sim.disk.faults import Fault
from headwater.sim.disk.file_node import FileNode
from headwater.storage.disk.files import Buffer

if TYPE_CHECKING:
    from headwater.sim.disk.faulty_disk import FaultyDisk


class FaultyFile:
    """An open file; it follows the file and not the name, as a descriptor does."""

    __slots__ = ("_closed", "_disk", "node", "path")

    def __init__(self, disk: FaultyDisk, path: str, node: FileNode) -> None:
        self.path = path
        self.node = node
        self._disk = disk
        self._closed = False

    def _begin(self, operation: str, *numbers: int) -> Fault | None:
        fault = self._disk.begin(operation, self.path)
        if any(number < 0 for number in numbers):
            raise os_error(errno.EINVAL, self.path)
        if self._closed:
            raise os_error(errno.EBADF, self.path)
        return fault

    def read_at(self, position: int, size: int) -> bytes:
        raise_fault(self._begin("read", position, size), self.path)
        return self.node.read(position, size)

    def write_at(self, position: int, data: Buffer) -> None:
        fault = self._begin("write", position)
        written = bytes(data)
        size = len(written)
        room = self._disk.free_bytes_unchecked() + max(0, self.node.size - position)
        if fault is not None:
            size = self._disk.rng.randrange(size + 1) if fault.torn else 0
        elif size > room:
            fault = Fault(error=errno.ENOSPC)
            size = self._disk.rng.randrange(room + 1)
        self.node.write(position, written[:size], self._disk.clock.wall_ms())
        raise_fault(fault, self.path)

    def truncate(self, size: int) -> None:
        raise_fault(self._begin("truncate", size), self.path)
        self.node.truncate(size, self._disk.clock.wall_ms())

    def reserve(self, size: int) -> None:
        """Nothing that can be seen changes, before a crash or after it."""

    def size(self) -> int:
        raise_fault(self._begin("stat"), self.path)
        return self.node.size

    def sync(self) -> None:
        fault = self._begin("sync")
        self._disk.sync_count += 1
        if fault is not None:
            self.node.forget_unsynced(self._disk.rng)
            raise_fault(fault, self.path)
        self.node.sync()

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a simulated file has no descriptor")

    def close(self) -> None:
        self._closed = True


class FaultyMapping:
    """A view that follows later writes, as a shared mapping does, each time it is asked for."""

    __slots__ = ("_disk", "_node", "_size", "_version", "_view", "path")

    def __init__(self, disk: FaultyDisk, path: str, node: FileNode) -> None:
        self.path = path
        self._disk = disk
        self._node: FileNode | None = node
        self._size = node.size
        self._version = -1
        self._view = memoryview(b"")

    @property
    def view(self) -> memoryview:
        self._disk.check_power()
        node = self._node
        if node is None:
            raise os_error(errno.EBADF, self.path)
        check(node.size >= self._size, "%s was truncated below its mapping: SIGBUS", self.path)
        if self._version != node.version:
            self._view = memoryview(node.read(0, self._size))
            self._version = node.version
        return self._view

    def close(self) -> None:
        self._node = None


class FaultyLock:
    """Held until released; the power loss that ends every process also ends every lock."""

    __slots__ = ("_locked", "_node")

    def __init__(self, locked: set[FileNode], node: FileNode) -> None:
        self._locked = locked
        self._node: FileNode | None = node
        locked.add(node)

    def release(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            self._locked.discard(node)


def raise_fault(fault: Fault | None, path: str, second_path: str | None = None) -> None:
    if fault is not None:
        raise os_error(fault.error, path, second_path)
