"""The names of a simulated disk: what lookups see, what is durable, and the changes in between.

Each directory has the entries that lookups see and those that are durable. A creation, a removal
or a rename is one `EntryChange`, which is atomic, and which waits until every directory it touches
has been synced. A power loss keeps any subset of the waiting changes that makes sense: a change is
lost if an earlier one that it builds upon is lost. It builds upon an earlier one if both concern
the same name in the same directory; and, where a directory comes, goes or moves, or something
moves between directories, if both concern the same directory. Without the second rule a file could
move into a directory that then never existed, and be found neither there nor where it was before.

Files have one name each, as in a log directory. Paths are "/"-separated; empty parts and "." mean
nothing, and a path without a leading "/" starts at the root too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from headwater.base.checks import check
from headwater.sim.disk.file_node import FileNode


class DirectoryNode:
    def __init__(self, number: int, parent: DirectoryNode | None, now_ms: int) -> None:
        self.number = number
        self.parent = parent
        self.modified_ms = now_ms
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}

    def lineage(self) -> Iterator[int]:
        """The numbers of this directory and those above it, without the root, which never moves."""
        node = self
        while node.parent is not None:
            yield node.number
            node = node.parent


Node = FileNode | DirectoryNode
Entry = tuple[DirectoryNode, str]


@dataclass(slots=True)
class EntryChange:
    """`node` leaves `source`, if it had a name before, and is at `target`, if it has one after."""

    node: Node
    source: Entry | None
    target: Entry | None
    #: What it concerns: (directory, name) pairs, and directories as such.
    concerns: frozenset[tuple[int, str] | int]
    #: The directories that must be synced before it is durable.
    unsynced: set[int]

    def apply(self, entries_of: Callable[[DirectoryNode], dict[str, Node]]) -> None:
        if self.source is not None:
            directory, name = self.source
            found = entries_of(directory).pop(name, None)
            check(found is self.node, "%s does not have the name that is taken from it", name)
        if self.target is not None:
            directory, name = self.target
            entries_of(directory)[name] = self.node


def os_error(code: int, path: str, second_path: str | None = None) -> OSError:
    """The error that the operating system would raise, of the subclass that belongs to `code`."""
    if second_path is None:
        return OSError(code, os.strerror(code), path)
    return OSError(code, os.strerror(code), path, None, second_path)


def path_parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    check(".." not in parts, "the simulated disk does not know '..': %s", path)
    return parts


class DirectoryTree:
    def __init__(self, now_ms: int) -> None:
        self.root = DirectoryNode(0, None, now_ms)
        self._next_number = 1
        self._pending: list[EntryChange] = []

    def next_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    # -- looking up ------------------------------------------------------------------------------

    def find(self, path: str) -> Node | None:
        """What has this name; None if nothing has. Errors as the operating system has them."""
        node: Node = self.root
        for part in path_parts(path):
            if not isinstance(node, DirectoryNode):
                raise os_error(errno.ENOTDIR, path)
            found = node.entries.get(part)
            if found is None:
                # Whether a part in the middle or the last is missing is the same to a lookup.
                return None
            node = found
        return node

    def existing(self, path: str) -> Node:
        node = self.find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        return node

    def file(self, path: str) -> FileNode:
        node = self.existing(path)
        if isinstance(node, DirectoryNode):
            raise os_error(errno.EISDIR, path)
        return node

    def directory(self, path: str) -> DirectoryNode:
        node = self.existing(path)
        if isinstance(node, FileNode):
            raise os_error(errno.ENOTDIR, path)
        return node

    def entry(self, path: str) -> Entry:
        """The directory that holds this path, or would, and the last part of it."""
        parts = path_parts(path)
        check(parts, "the root directory has no name")
        return self.directory("/".join(parts[:-1])), parts[-1]

    def walk(self) -> Iterator[tuple[str, Node]]:
        """Every file and directory with its path, a directory before what is in it."""
        stack: list[tuple[str, Node]] = [("", self.root)]
        while stack:
            path, node = stack.pop()
            if node is not self.root:
                yield path, node
            if isinstance(node, DirectoryNode):
                below = sorted(node.entries.items(), reverse=True)
                stack += [(f"{path}/{name}", child) for name, child in below]

    # -- changing --------------------------------------------------------------------------------

    def add(self, entry: Entry, node: Node, now_ms: int) -> None:
        directory, name = entry
        check(name not in directory.entries, "%s is there already", name)
        self._change(node, None, entry, now_ms)

    def remove(self, entry: Entry, now_ms: int) -> None:
        directory, name = entry
        node = directory.entries[name]
        if isinstance(node, DirectoryNode):
            check(not node.entries, "%s is removed but not empty", name)
        self._change(node, entry, None, now_ms)

    def rename(self, source: str, target: str, now_ms: int) -> None:
        old, new = self.entry(source), self.entry(target)
        node = old[0].entries.get(old[1])
        if node is None:
            raise os_error(errno.ENOENT, source, target)
        replaced = new[0].entries.get(new[1])
        if isinstance(node, DirectoryNode) and node.number in new[0].lineage():
            raise os_error(errno.EINVAL, source, target)
        if isinstance(replaced, DirectoryNode) and replaced.number in old[0].lineage():
            raise os_error(errno.ENOTEMPTY, source, target)
        if replaced is node:
            return
        if isinstance(replaced, DirectoryNode):
            if isinstance(node, FileNode):
                raise os_error(errno.EISDIR, source, target)
            if replaced.entries:
                raise os_error(errno.ENOTEMPTY, source, target)
        elif replaced is not None and isinstance(node, DirectoryNode):
            raise os_error(errno.ENOTDIR, source, target)
        self._change(node, old, new, now_ms)

    def _change(self, node: Node, source: Entry | None, target: Entry | None, now_ms: int) -> None:
        entries = [entry for entry in (source, target) if entry is not None]
        concerns: set[tuple[int, str] | int] = {(holder.number, name) for holder, name in entries}
        touched = {holder.number for holder, _ in entries}
        nodes = [node, target[0].entries.get(target[1])] if target is not None else [node]
        concerns.update(each.number for each in nodes if isinstance(each, DirectoryNode))
        if len(touched) == 2:
            for holder, _ in entries:
                concerns.update(holder.lineage())
        if isinstance(node, DirectoryNode) and target is not None:
            node.parent = target[0]
        change = EntryChange(node, source, target, frozenset(concerns), touched)
        change.apply(lambda holder: holder.entries)
        for holder, _ in entries:
            holder.modified_ms = now_ms
        self._pending.append(change)

    # -- durability ------------------------------------------------------------------------------

    def sync(self, directory: DirectoryNode) -> None:
        """Make the changes in this directory durable, and those that they build upon."""
        durable: list[EntryChange] = []
        waiting: list[EntryChange] = []
        concerned: set[tuple[int, str] | int] = set()
        for change in reversed(self._pending):
            change.unsynced.discard(directory.number)
            if not change.unsynced or change.concerns & concerned:
                durable.append(change)
                concerned |= change.concerns
            else:
                waiting.append(change)
        for change in reversed(durable):
            change.apply(lambda holder: holder.durable)
        # A directory that is gone for good can never be synced, and nobody will look into it.
        gone = {change.node.number for change in durable if change.target is None}
        self._pending = [change for change in reversed(waiting) if not change.unsynced <= gone]

    def after_power_loss(self, rng: Random, now_ms: int) -> DirectoryTree:
        """A new tree of what is found on the disk, all of it durable; this one stays as it is."""
        entries: dict[int, dict[str, Node]] = {}

        def entries_of(directory: DirectoryNode) -> dict[str, Node]:
            if directory.number not in entries:
                entries[directory.number] = dict(directory.durable)
            return entries[directory.number]

        kind = rng.choice(("none", "all", "prefix", "any", "any"))
        prefix = rng.randrange(len(self._pending) + 1) if kind == "prefix" else 0
        lost: set[tuple[int, str] | int] = set()
        for number, change in enumerate(self._pending):
            arrives = kind == "all" or (
                number < prefix if kind == "prefix" else kind == "any" and rng.random() < 0.5
            )
            if arrives and not change.concerns & lost:
                change.apply(entries_of)
            else:
                lost |= change.concerns
        tree = DirectoryTree(now_ms)
        stack = [(self.root, tree.root)]
        while stack:
            old, new = stack.pop()
            for name, node in sorted(entries_of(old).items()):
                found: Node
                if isinstance(node, FileNode):
                    content = node.after_power_loss(rng)
                    found = FileNode(tree.next_number(), node.modified_ms, content)
                else:
                    found = DirectoryNode(tree.next_number(), new, node.modified_ms)
                    stack.append((node, found))
                new.entries[name] = new.durable[name] = found
        return tree
