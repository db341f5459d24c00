"""A file system in memory that fails as disks do, and that always fails the same way.

It keeps the contract of `headwater.storage.disk.files` and grants nothing beyond it: what was not
synced may be lost or torn when the power goes, names and renames included. See `file_node` and
`directory_tree` for exactly how, and `faults` for the errors it can be asked to raise.

A crash test runs some work with a `PowerCut` as `before_operation`, catches the `SimulatedCrash`,
and opens what `crash(rng)` returns. The disk that crashed keeps its state, so that one run can be
followed by many different power losses, but it is off: every use of it or of a file open on it
raises `SimulatedCrash` again. Closing is the exception, so that clean-up code does not obscure the
first error.

All randomness comes from the seed and from the generator given to `crash`, and time from the clock:
the same operations give the same result.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterable
from random import Random

from headwater.base.clocks import Clock, ManualClock
from headwater.sim.disk.directory_tree import DirectoryNode, DirectoryTree, os_error
from headwater.sim.disk.faults import Fault, PowerCut, SimulatedCrash
from headwater.sim.disk.faulty_file import FaultyFile, FaultyLock, FaultyMapping, raise_fault
from headwater.sim.disk.file_node import FileNode

__all__ = ["Fault", "FaultyDisk", "PowerCut", "SimulatedCrash"]

OPERATION_LOG_SIZE = 10_000
ENDLESS_BYTES = 1 << 40


class FaultyDisk:
    """The `FileSystem` in memory. `directories` exist from the start, durably."""

    def __init__(
        self,
        seed: int = 0,
        *,
        clock: Clock | None = None,
        directories: Iterable[str] = (),
        capacity_bytes: int | None = None,
    ) -> None:
        self.rng = Random(seed)
        self.clock: Clock = ManualClock() if clock is None else clock
        #: The disk is full beyond this. `used_bytes` plus n makes it full after n more bytes.
        self.capacity_bytes = capacity_bytes
        self.faults: list[Fault] = []
        self.before_operation: Callable[[str, str], None] | None = None
        self.sync_count = 0
        self.sync_dir_count = 0
        #: The latest operations and their paths, to look at when a test fails.
        self.operations: deque[tuple[str, str]] = deque(maxlen=OPERATION_LOG_SIZE)
        self._is_off = False
        self._locked: set[FileNode] = set()
        self._tree = DirectoryTree(self.clock.wall_ms())
        for path in directories:
            self.make_dir(path)
        for _, node in [("", self._tree.root), *self._tree.walk()]:
            if isinstance(node, DirectoryNode):
                self._tree.sync(node)
        self.operations.clear()

    # -- power, faults and space -----------------------------------------------------------------

    def crash(self, rng: Random) -> FaultyDisk:
        """Turn this disk off and return one with what is found after the power loss."""
        self._is_off = True
        return self.after_power_loss(rng)

    def after_power_loss(self, rng: Random) -> FaultyDisk:
        """The disk that would be found if the power went now; this one stays on."""
        disk = FaultyDisk(rng.getrandbits(32), clock=self.clock, capacity_bytes=self.capacity_bytes)
        disk._tree = self._tree.after_power_loss(rng, self.clock.wall_ms())
        return disk

    def after_process_end(self) -> FaultyDisk:
        """The same disk for the next process: nothing is lost, but files and locks are let go.

        What the process that ended still holds of this object is off for it, as after a crash.
        """
        self._is_off = True
        disk = FaultyDisk(
            self.rng.getrandbits(32), clock=self.clock, capacity_bytes=self.capacity_bytes
        )
        disk._tree = self._tree
        return disk

    def contents(self) -> dict[str, bytes]:
        """The bytes of every file by its path, for a test to compare; works with the power off."""
        nodes = self._tree.walk()
        return {path: bytes(node.content) for path, node in nodes if isinstance(node, FileNode)}

    @property
    def used_bytes(self) -> int:
        return sum(node.size for _, node in self._tree.walk() if isinstance(node, FileNode))

    def free_bytes_unchecked(self) -> int:
        if self.capacity_bytes is None:
            return ENDLESS_BYTES
        return max(0, self.capacity_bytes - self.used_bytes)

    def check_power(self) -> None:
        if self._is_off:
            raise SimulatedCrash("the power is off")

    def begin(self, operation: str, path: str, second_path: str | None = None) -> Fault | None:
        """Every operation starts here: the power, the log, the hook, then whether it fails."""
        self.check_power()
        self.operations.append((operation, path))
        if self.before_operation is not None:
            try:
                self.before_operation(operation, path)
            except SimulatedCrash:
                self._is_off = True
                raise
        paths = (path,) if second_path is None else (path, second_path)
        return next((fault for fault in self.faults if fault.hits(operation, paths)), None)

    def _begin(self, operation: str, path: str, second_path: str | None = None) -> None:
        raise_fault(self.begin(operation, path, second_path), path, second_path)

    # -- files -----------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        return FaultyFile(self, path, self._file(path, create))

    def _file(self, path: str, create: bool) -> FileNode:
        self.check_power()
        missing = create and self._tree.find(path) is None
        self._begin("create" if missing else "open", path)
        if not missing:
            return self._tree.file(path)
        entry, now_ms = self._tree.entry(path), self.clock.wall_ms()
        node = FileNode(self._tree.next_number(), now_ms)
        self._tree.add(entry, node, now_ms)
        return node

    def map(self, path: str) -> FaultyMapping:
        self._begin("map", path)
        return FaultyMapping(self, path, self._tree.file(path))

    def lock(self, path: str) -> FaultyLock:
        node = self._file(path, create=True)
        self._begin("lock", path)
        if node in self._locked:
            raise os_error(errno.EAGAIN, path)
        return FaultyLock(self._locked, node)

    # -- names -----------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self._found(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._found(path), DirectoryNode)

    def _found(self, path: str) -> FileNode | DirectoryNode | None:
        self.check_power()
        try:
            return self._tree.find(path)
        except NotADirectoryError:
            return None

    def list_dir(self, path: str) -> list[str]:
        self._begin("list_dir", path)
        return sorted(self._tree.directory(path).entries)

    def make_dir(self, path: str) -> None:
        self.check_power()
        made = ""
        for part in path.split("/"):
            made += part
            node = self._tree.find(made)
            if node is None:
                self._begin("make_dir", made)
                now_ms = self.clock.wall_ms()
                holder, name = self._tree.entry(made)
                node = DirectoryNode(self._tree.next_number(), holder, now_ms)
                self._tree.add((holder, name), node, now_ms)
            made += "/"
        if isinstance(node, FileNode):
            raise os_error(errno.EEXIST, path)

    def rename(self, source: str, target: str) -> None:
        self._begin("rename", source, target)
        self._tree.rename(source, target, self.clock.wall_ms())

    def remove(self, path: str) -> None:
        self._begin("remove", path)
        self._tree.file(path)
        self._tree.remove(self._tree.entry(path), self.clock.wall_ms())

    def remove_tree(self, path: str) -> None:
        self._begin("list_dir", path)
        for name, node in sorted(self._tree.directory(path).entries.items()):
            below = f"{path}/{name}"
            if isinstance(node, DirectoryNode):
                self.remove_tree(below)
            else:
                self.remove(below)
        self._begin("remove_dir", path)
        self._tree.remove(self._tree.entry(path), self.clock.wall_ms())

    def sync_dir(self, path: str) -> None:
        self._begin("sync_dir", path)
        self.sync_dir_count += 1
        self._tree.sync(self._tree.directory(path))

    def size(self, path: str) -> int:
        self._begin("stat", path)
        node = self._tree.existing(path)
        return node.size if isinstance(node, FileNode) else 0

    def modified_ms(self, path: str) -> int:
        self._begin("stat", path)
        return self._tree.existing(path).modified_ms

    def free_bytes(self, path: str) -> int:
        self._begin("stat", path)
        self._tree.existing(path)
        return self.free_bytes_unchecked()

    def total_bytes(self, path: str) -> int:
        self._begin("stat", path)
        self._tree.existing(path)
        return ENDLESS_BYTES if self.capacity_bytes is None else self.capacity_bytes
