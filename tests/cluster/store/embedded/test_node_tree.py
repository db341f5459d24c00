"""The tree against a plain dict of nodes, through random transactions."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater.base.checks import InvariantError
from headwater.cluster.store.embedded.journal import NodeRow
from headwater.cluster.store.embedded.node_tree import Applied, NodeTree
from headwater.cluster.store.embedded.watches import Watches
from headwater.cluster.store.errors import (
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    StoreError,
)
from headwater.cluster.store.metadata_store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Operation,
    Set,
    WatchEvent,
    WatchKind,
)

_PATHS = [f"/{a}" for a in "ab"] + [f"/{a}/{b}" for a in "ab" for b in "cd"] + ["/a/c/e"]
_paths = st.sampled_from(_PATHS)
_data = st.sampled_from([b"", b"x", b"y"])
_versions = st.sampled_from([ANY_VERSION, ANY_VERSION, 0, 1])
_operations = st.one_of(
    st.builds(Create, _paths, _data, ephemeral=st.booleans()),
    st.builds(Create, _paths, _data),
    st.builds(Create, _paths, _data, ephemeral=st.booleans(), sequence=st.just(True)),
    st.builds(Set, _paths, _data, _versions),
    st.builds(Delete, _paths, _versions),
    st.builds(Check, _paths, _versions),
)
_transactions = st.lists(_operations, max_size=5)
_sessions = st.sampled_from([1, 2])


class ModelNode(NamedTuple):
    data: bytes
    version: int
    owner: int
    created_ms: int
    modified_ms: int
    creation_id: int


class Model:
    """What a tree should do, on a flat dict and copying it for every transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, ModelNode] = {"/": ModelNode(b"", 0, 0, 0, 0, 0)}
        self.sequences: dict[str, int] = {"/": 0}
        self.events: list[WatchEvent] = []

    def copy(self) -> Model:
        copy = Model()
        copy.nodes, copy.sequences = dict(self.nodes), dict(self.sequences)
        return copy

    def has_children(self, path: str) -> bool:
        return any(other.startswith(path + "/") for other in self.nodes)

    def do(self, operation: Operation, session_id: int, number: int, now_ms: int) -> object:
        path = operation.path
        parent = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            if parent not in self.nodes:
                raise NoNodeError(path)
            if self.nodes[parent].owner:
                raise NoChildrenForEphemeralsError(path)
            if operation.sequence:
                path += str(self.sequences[parent]).zfill(10)
            if path in self.nodes:
                raise NodeExistsError(path)
            owner = session_id if operation.ephemeral else 0
            self.nodes[path] = ModelNode(operation.data, 0, owner, now_ms, now_ms, number)
            self.sequences[path] = 0
            self.sequences[parent] += 1
            self.events.append(WatchEvent(WatchKind.CREATED, path))
            return path
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        if isinstance(operation, Set):
            self.nodes[path] = node._replace(
                data=operation.data, version=node.version + 1, modified_ms=now_ms
            )
            self.events.append(WatchEvent(WatchKind.CHANGED, path))
            return node.version + 1
        if isinstance(operation, Delete):
            if self.has_children(path):
                raise NotEmptyError(path)
            del self.nodes[path], self.sequences[path]
            self.events.append(WatchEvent(WatchKind.DELETED, path))
        return None


class NodeTreeMachine(RuleBasedStateMachine):
    """Transactions, the end of sessions, undone commits, restarts and watches."""

    @initialize()
    def begin(self) -> None:
        self.tree = NodeTree()
        self.model = Model()
        self.rows: dict[str, NodeRow] = {}
        self.now_ms = 1_000
        self.watches = Watches()
        #: Which watches are set, by table; and how often each was called.
        self.node_watches: dict[str, list[int]] = {}
        self.child_watches: dict[str, list[int]] = {}
        self.called: list[list[WatchEvent]] = []
        self.expected: list[list[WatchEvent]] = []

    @rule(operations=_transactions, session_id=_sessions, undo=st.booleans())
    def transaction(self, operations: list[Operation], session_id: int, undo: bool) -> None:
        self.now_ms += 1
        model = self.model.copy()
        number = self.tree.transaction_id + 1
        expected: object
        try:
            expected = [model.do(each, session_id, number, self.now_ms) for each in operations]
        except StoreError as error:
            expected = (type(error), error.path)
        try:
            applied = self.tree.apply(operations, session_id, self.now_ms)
        except StoreError as error:
            assert (type(error), error.path) == expected
            return
        assert applied.results == expected
        assert applied.events == model.events
        if undo:
            self.tree.undo(applied)
        else:
            self.model = model
            self._committed(applied)

    @rule(session_id=_sessions)
    def end_session(self, session_id: int) -> None:
        applied = self.tree.end_session(session_id, self.now_ms)
        gone = [path for path, node in self.model.nodes.items() if node.owner == session_id]
        assert {event.path for event in applied.events if event.kind is WatchKind.DELETED} == set(
            gone
        )
        for path in gone:
            del self.model.nodes[path], self.model.sequences[path]
        self.watches.drop_session(session_id)
        for table in (self.node_watches, self.child_watches):
            for path, numbers in table.items():
                table[path] = [each for each in numbers if each % 2 + 1 != session_id]
        self._committed(applied)

    @rule()
    def restart(self) -> None:
        rows = [self.rows[path] for path in sorted(self.rows)]
        self.tree = NodeTree(rows, self.tree.transaction_id)
        for path in [path for path, node in self.model.nodes.items() if node.owner]:
            del self.model.nodes[path], self.model.sequences[path]

    @rule(path=st.one_of(_paths, st.just("/")), session_id=_sessions, children=st.booleans())
    def watch(self, path: str, session_id: int, children: bool) -> None:
        # The parity of its number tells the session of a watch.
        if len(self.called) % 2 + 1 != session_id:
            self.called.append([])
            self.expected.append([])
        number = len(self.called)
        self.called.append([])
        self.expected.append([])
        if children:
            self.watches.watch_children(session_id, path, self.called[number].append)
            self.child_watches.setdefault(path, []).append(number)
        else:
            self.watches.watch_node(session_id, path, self.called[number].append)
            self.node_watches.setdefault(path, []).append(number)

    def _committed(self, applied: Applied) -> None:
        for path, row in applied.changes.items():
            if row is None:
                self.rows.pop(path, None)
            else:
                self.rows[path] = row
        for event in applied.events:
            numbers = self.node_watches.pop(event.path, [])
            if event.kind is WatchKind.DELETED:
                numbers += self.child_watches.pop(event.path, [])
            for number in numbers:
                self.expected[number].append(event)
            if event.kind is not WatchKind.CHANGED:
                parent = event.path.rpartition("/")[0] or "/"
                for number in self.child_watches.pop(parent, []):
                    self.expected[number].append(WatchEvent(WatchKind.CHILDREN, parent))
        for watch, event in self.watches.take(applied.events):
            watch(event)

    @invariant()
    def tree_is_as_the_model(self) -> None:
        for path, expected in self.model.nodes.items():
            node = self.tree.get(path)
            assert (node.data, node.version, node.ephemeral_owner) == expected[:3]
            assert (node.created_ms, node.modified_ms, node.creation_id) == expected[3:]
            found = self.tree.find(path)
            assert found is not None and found.sequence == self.model.sequences[path]
            prefix = path.rstrip("/") + "/"
            below = {other for other in self.model.nodes if other.startswith(prefix)} - {"/"}
            names = sorted(other[len(prefix) :] for other in below)
            assert self.tree.children(path) == [name for name in names if "/" not in name]

    @invariant()
    def watches_were_called_as_expected(self) -> None:
        assert self.called == self.expected
        assert all(len(events) <= 1 for events in self.called)

    @invariant()
    def the_journal_holds_what_is_not_ephemeral(self) -> None:
        loaded = NodeTree([self.rows[path] for path in sorted(self.rows)])
        for path, node in self.model.nodes.items():
            if node.owner:
                assert loaded.exists(path) is None
            else:
                assert loaded.get(path) == self.tree.get(path)
                found = loaded.find(path)
                assert found is not None and found.sequence == self.model.sequences[path]


TestNodeTree = NodeTreeMachine.TestCase


def test_only_the_newest_transaction_can_be_undone() -> None:
    tree = NodeTree()
    older = tree.apply([Create("/a", b"")], 1, 0)
    newer = tree.apply([Create("/b", b"")], 1, 0)
    with pytest.raises(InvariantError):
        tree.undo(older)
    tree.undo(newer)
    tree.undo(older)
    assert tree.children("/") == []
    assert tree.transaction_id == 0


def test_half_of_the_nodes_of_a_topic_need_no_row() -> None:
    tree = NodeTree()
    creations: list[Operation] = [Create("/t", b"topic"), Create("/t/partitions", b"")]
    for partition in range(100):
        creations.append(Create(f"/t/partitions/{partition}", b""))
        creations.append(Create(f"/t/partitions/{partition}/state", b"{}"))
    applied = tree.apply(creations, 1, now_ms=5)
    rows = [row for _, row in sorted(applied.changes.items()) if row is not None]
    assert len(rows) == 103
    loaded = NodeTree(rows)
    assert loaded.get("/t/partitions/7") == tree.get("/t/partitions/7")
    # As soon as the child is gone, the parent must be kept for itself.
    applied = tree.apply([Delete("/t/partitions/7/state")], 1, now_ms=6)
    assert applied.changes["/t/partitions/7"] is not None


def test_undoing_goes_from_the_last_operation_to_the_first() -> None:
    tree = NodeTree()
    tree.apply([Create("/a", b"old"), Create("/e", b"", ephemeral=True)], 1, now_ms=1)
    before = tree.get("/a"), tree.get("/e")
    applied = tree.apply(
        [
            Set("/a", b"newer"),
            Delete("/a"),
            Create("/a", b"new", ephemeral=True),
            Delete("/e"),
            Create("/e", b""),
            Set("/e", b"x"),
        ],
        2,
        now_ms=2,
    )
    tree.undo(applied)
    assert (tree.get("/a"), tree.get("/e")) == before
    assert tree.end_session(2, now_ms=3).events == []
    assert [event.path for event in tree.end_session(1, now_ms=3).events] == ["/e"]
    assert tree.children("/") == ["a"]
