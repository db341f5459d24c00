"""Who waits for a change of which node.

There are two tables, as in ZooKeeper: `get` and `exists` wait for the node itself, `children` for
the names below it, and the end of a node ends both. A watch leaves its table when it is called.
The same callable of the same session counts once per node and table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.cluster.store.metadata_store import Watch, WatchEvent, WatchKind
from headwater.cluster.store.node_paths import parent_of

#: By path, the watches in the order in which they came.
_Table = dict[str, dict[tuple[int, Watch], None]]


class Watches:
    """The watches of all sessions of one store."""

    def __init__(self) -> None:
        self._node_watches: _Table = {}
        self._child_watches: _Table = {}

    def watch_node(self, session_id: int, path: str, watch: Watch) -> None:
        self._node_watches.setdefault(path, {})[session_id, watch] = None

    def watch_children(self, session_id: int, path: str, watch: Watch) -> None:
        self._child_watches.setdefault(path, {})[session_id, watch] = None

    def take(self, events: Iterable[WatchEvent]) -> Iterator[tuple[Watch, WatchEvent]]:
        """Remove the watches that the events concern, and yield each with its event.

        `events` are those of the nodes themselves. That a node came or went concerns its parent's
        children too, and follows from it here.
        """
        if not self._node_watches and not self._child_watches:
            return
        for event in events:
            taken = self._node_watches.pop(event.path, {})
            if event.kind is WatchKind.DELETED:
                # One that waits in both tables hears of the end once.
                taken |= self._child_watches.pop(event.path, {})
            for _, watch in taken:
                yield watch, event
            if event.kind is not WatchKind.CHANGED:
                parent = parent_of(event.path)
                for _, watch in self._child_watches.pop(parent, {}):
                    yield watch, WatchEvent(WatchKind.CHILDREN, parent)

    def drop_session(self, session_id: int) -> None:
        """Forget what a session was waiting for."""
        for table in (self._node_watches, self._child_watches):
            for path in list(table):
                table[path] = {key: None for key in table[path] if key[0] != session_id}
                if not table[path]:
                    del table[path]
