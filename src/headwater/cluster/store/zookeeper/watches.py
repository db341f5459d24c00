"""What one ZooKeeper session waits for, and what it knew when it began to wait.

ZooKeeper keeps watches at the server that a session is connected to, and kazoo forgets them when
the connection breaks. So they are kept here, each with the number of the transaction that last
changed what was read. After a reconnect the same is read again: where that number is another one,
the change happened meanwhile, and the watch is called as if the server had sent the event.

As in ZooKeeper there are two tables: `get` and `exists` wait for the node itself, `children` for
the names below it, and the end of a node ends both.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.cluster.store.metadata_store import Watch, WatchEvent, WatchKind

#: The last transaction that changed what is watched; None for a node that did not exist.
Known = int | None


class _Entry(NamedTuple):
    known: Known
    #: In the order in which they came; the same callable counts once.
    watches: dict[Watch, None]


class ZooKeeperWatches:
    """The watches of one session."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Entry] = {}
        self._children: dict[str, _Entry] = {}

    def leave_on_node(self, path: str, known: Known, watch: Watch) -> None:
        self._nodes.setdefault(path, _Entry(known, {})).watches[watch] = None

    def leave_on_children(self, path: str, known: Known, watch: Watch) -> None:
        self._children.setdefault(path, _Entry(known, {})).watches[watch] = None

    def watched_nodes(self) -> list[str]:
        return list(self._nodes)

    def watched_children(self) -> list[str]:
        return list(self._children)

    def take(self, event: WatchEvent) -> list[Watch]:
        """Remove the watches that an event concerns, and return them."""
        taken: dict[Watch, None] = {}
        if event.kind is not WatchKind.CHILDREN:
            taken |= self._take_from(self._nodes, event.path)
        if event.kind in (WatchKind.CHILDREN, WatchKind.DELETED):
            # One that waits in both tables hears of the end once.
            taken |= self._take_from(self._children, event.path)
        return list(taken)

    def missed_on_node(self, path: str, now: Known) -> WatchEvent | None:
        """What became of a node, seen again after a time without a connection."""
        entry = self._nodes.get(path)
        if entry is None or entry.known == now:
            return None
        if now is None:
            return WatchEvent(WatchKind.DELETED, path)
        return WatchEvent(WatchKind.CREATED if entry.known is None else WatchKind.CHANGED, path)

    def missed_on_children(self, path: str, now: Known) -> WatchEvent | None:
        """What became of the names below a node, seen again after a time without a connection."""
        entry = self._children.get(path)
        if entry is None or entry.known == now:
            return None
        return WatchEvent(WatchKind.DELETED if now is None else WatchKind.CHILDREN, path)

    def drop_all(self) -> None:
        self._nodes.clear()
        self._children.clear()

    @staticmethod
    def _take_from(table: dict[str, _Entry], path: str) -> dict[Watch, None]:
        entry = table.pop(path, None)
        return {} if entry is None else entry.watches
