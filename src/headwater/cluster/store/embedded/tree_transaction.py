"""Carries out operations on the tree one by one, and can take all of them back.

Each operation sees what those in front of it did. A transaction remembers, besides the way back,
which nodes it touched, for the journal, and what happened to them, for the watches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from headwater.cluster.store.embedded.journal import NodeRow
from headwater.cluster.store.embedded.tree_node import TreeNode
from headwater.cluster.store.errors import (
    BadVersionError,
    InvalidPathError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from headwater.cluster.store.metadata_store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Operation,
    Result,
    Set,
    WatchEvent,
    WatchKind,
)
from headwater.cluster.store.node_paths import parent_of, split_path

if TYPE_CHECKING:
    from headwater.cluster.store.embedded.node_tree import NodeTree

SEQUENCE_DIGITS: Final = 10


class TreeTransaction:
    """The operations of one `multi`, or a single one."""

    def __init__(self, tree: NodeTree, session_id: int, transaction_id: int, now_ms: int) -> None:
        self.events: list[WatchEvent] = []
        self._tree = tree
        self._session_id = session_id
        self._transaction_id = transaction_id
        self._now_ms = now_ms
        self._touched: dict[str, TreeNode | None] = {}
        self._way_back: list[Callable[[], None]] = []

    def carry_out(self, operation: Operation) -> Result:
        """Do one operation, or raise a StoreError and leave the tree as it is."""
        match operation:
            case Create():
                return self._create(operation)
            case Set():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check():
                self._find(operation.path, operation.version)
        return None

    def undo(self) -> None:
        """Bring the tree back to where it was, from the last operation to the first."""
        while self._way_back:
            self._way_back.pop()()

    def rows(self) -> dict[str, NodeRow | None]:
        """What the journal must know: None where there is nothing to keep."""
        return {
            path: None if node is None or node.owner or node.is_implied else node.row(path)
            for path, node in self._touched.items()
        }

    def _create(self, operation: Create) -> str:
        path = operation.path
        parent_path = self._parent_path(path, allow_empty_name=operation.sequence)
        parent = self._tree.find(parent_path)
        if parent is None:
            raise NoNodeError(path)
        if parent.owner:
            raise NoChildrenForEphemeralsError(path)
        if operation.sequence:
            path += f"{parent.sequence:0{SEQUENCE_DIGITS}}"
        name = path[path.rindex("/") + 1 :]
        if parent.children is not None and name in parent.children:
            raise NodeExistsError(path)
        node = TreeNode(operation.data, 0, self._now_ms, self._now_ms, self._transaction_id)
        self._way_back.append(partial(self._remove, parent, name, path, parent.sequence))
        parent.sequence += 1
        if operation.ephemeral:
            node.owner = self._session_id
        self._put(parent, name, path, node)
        self._touched[path] = node
        self._touched[parent_path] = parent
        self.events.append(WatchEvent(WatchKind.CREATED, path))
        return path

    def _set(self, operation: Set) -> int:
        node = self._find(operation.path, operation.version)
        self._way_back.append(partial(_restore, node, node.data, node.version, node.modified_ms))
        node.data = operation.data
        node.version += 1
        node.modified_ms = self._now_ms
        self._touched[operation.path] = node
        self.events.append(WatchEvent(WatchKind.CHANGED, operation.path))
        return node.version

    def _delete(self, operation: Delete) -> None:
        path = operation.path
        parent_path = self._parent_path(path)
        node = self._find(path, operation.version)
        if node.children:
            raise NotEmptyError(path)
        parent = self._find(parent_path)
        name = path[path.rindex("/") + 1 :]
        self._way_back.append(partial(self._put, parent, name, path, node))
        self._remove(parent, name, path, parent.sequence)
        if not node.owner:
            # The journal never knew of an ephemeral node.
            self._touched[path] = None
            self._touched[parent_path] = parent
        self.events.append(WatchEvent(WatchKind.DELETED, path))

    def _find(self, path: str, version: int = ANY_VERSION) -> TreeNode:
        node = self._tree.find(path)
        if node is None:
            raise NoNodeError(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        return node

    def _parent_path(self, path: str, *, allow_empty_name: bool = False) -> str:
        """The parent of a node that is to come or go, which the root never does."""
        # A sequential node may be named by its number alone: its path then ends in a slash.
        names = split_path(path + "0" if allow_empty_name else path)
        if not names:
            raise InvalidPathError(path)
        return parent_of(path)

    def _put(self, parent: TreeNode, name: str, path: str, node: TreeNode) -> None:
        if parent.children is None:
            parent.children = {}
        parent.children[name] = node
        if node.owner:
            self._tree.ephemeral_created(node.owner, path)

    def _remove(self, parent: TreeNode, name: str, path: str, sequence: int) -> None:
        children = parent.children or {}
        node = children.pop(name)
        if not children:
            parent.children = None
        parent.sequence = sequence
        if node.owner:
            self._tree.ephemeral_deleted(node.owner, path)


def _restore(node: TreeNode, data: bytes, version: int, modified_ms: int) -> None:
    node.data = data
    node.version = version
    node.modified_ms = modified_ms
