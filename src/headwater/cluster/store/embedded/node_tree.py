"""The tree of nodes itself: the state machine of a metadata store, without input or output.

It is told everything, the time included, and does nothing by itself. `apply` carries out the
operations of one transaction, all or none, and returns what came of them: the results for the
caller, the rows for the journal, the events for the watches. The tree then holds the new state, but
nobody may see it before the journal has committed it; if that fails, `undo` takes the newest
transactions back, last one first.

A node is an object that holds its children by name, so that a million nodes share the text of
their common paths, and a path is found by walking down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.base.checks import check
from headwater.cluster.store.embedded.journal import Changes, NodeRow
from headwater.cluster.store.embedded.tree_node import TreeNode
from headwater.cluster.store.embedded.tree_transaction import TreeTransaction
from headwater.cluster.store.errors import NoNodeError
from headwater.cluster.store.metadata_store import (
    Delete,
    Node,
    Operation,
    Result,
    WatchEvent,
)
from headwater.cluster.store.node_paths import ROOT, split_path


class Applied(NamedTuple):
    """What one transaction did."""

    transaction_id: int
    results: list[Result]
    changes: Changes
    events: list[WatchEvent]
    transaction: TreeTransaction


class NodeTree:
    """All nodes, and which session the ephemeral ones belong to."""

    def __init__(self, rows: Iterable[NodeRow] = (), transaction_id: int = 0) -> None:
        self.transaction_id = transaction_id
        #: A path begins with an empty name: that of the root, which lies below this one.
        self._above_root = TreeNode(b"", 0, 0, 0)
        self._above_root.children = {"": TreeNode(b"", 0, 0, 0)}
        #: The paths that go with a session, in the order of their creation.
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._load(rows)

    def _load(self, rows: Iterable[NodeRow]) -> None:
        nodes = {"": self._root}
        # Equal data is kept once: the states of most partitions are the same bytes.
        known_data: dict[bytes, bytes] = {}
        for path, data, version, created_ms, modified_ms, creation_id, sequence in rows:
            data = known_data.setdefault(data, data)
            node = TreeNode(data, version, created_ms, modified_ms, creation_id, sequence)
            if path == ROOT:
                check(not self._root.children, "the row of the root must come first")
                self._above_root.children = {"": node}
                nodes[""] = node
                continue
            parent_path, _, name = path.rpartition("/")
            parent = nodes.get(parent_path) or _implied(parent_path, node, nodes)
            if parent.children is None:
                parent.children = {}
            parent.children[name] = nodes[path] = node

    @property
    def _root(self) -> TreeNode:
        return (self._above_root.children or {})[""]

    def find(self, path: str) -> TreeNode | None:
        """The node, if there is one; raises InvalidPathError."""
        if len(path) < 2:
            split_path(path)
            return self._root
        node: TreeNode | None = self._above_root
        for name in path.split("/"):
            if node is None or node.children is None:
                node = None
                break
            node = node.children.get(name)
        if node is None:
            # No node was ever created under a path that is none, so this check can wait.
            split_path(path)
        return node

    def get(self, path: str) -> Node:
        node = self.exists(path)
        if node is None:
            raise NoNodeError(path)
        return node

    def exists(self, path: str) -> Node | None:
        found = self.find(path)
        return None if found is None else found.snapshot()

    def children(self, path: str) -> list[str]:
        found = self.find(path)
        if found is None:
            raise NoNodeError(path)
        return sorted(found.children or ())

    def apply(self, operations: Sequence[Operation], session_id: int, now_ms: int) -> Applied:
        """Carry out a transaction; a StoreError out of it means that nothing has changed."""
        transaction = TreeTransaction(self, session_id, self.transaction_id + 1, now_ms)
        try:
            results = [transaction.carry_out(operation) for operation in operations]
        except BaseException:
            transaction.undo()
            raise
        self.transaction_id += 1
        return Applied(
            self.transaction_id, results, transaction.rows(), transaction.events, transaction
        )

    def end_session(self, session_id: int, now_ms: int) -> Applied:
        """Delete the ephemeral nodes of a session, the newest first."""
        paths = list(self._ephemerals.get(session_id, ()))
        return self.apply([Delete(path) for path in reversed(paths)], session_id, now_ms)

    def undo(self, applied: Applied) -> None:
        """Take back a transaction; it must be the newest that was not taken back."""
        newest = applied.transaction_id == self.transaction_id
        check(newest, "only the newest change can be undone")
        applied.transaction.undo()
        self.transaction_id -= 1

    def ephemeral_created(self, session_id: int, path: str) -> None:
        self._ephemerals.setdefault(session_id, {})[path] = None

    def ephemeral_deleted(self, session_id: int, path: str) -> None:
        paths = self._ephemerals[session_id]
        del paths[path]
        if not paths:
            del self._ephemerals[session_id]


def _implied(path: str, child: TreeNode, nodes: dict[str, TreeNode]) -> TreeNode:
    """The parent of a loaded node that has no row of its own: see `journal`."""
    node = TreeNode(b"", 0, child.created_ms, child.created_ms, child.creation_id, 1)
    parent_path, _, name = path.rpartition("/")
    parent = nodes.get(parent_path) or _implied(parent_path, node, nodes)
    if parent.children is None:
        parent.children = {}
    parent.children[name] = nodes[path] = node
    return node
