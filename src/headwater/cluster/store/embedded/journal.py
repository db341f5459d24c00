"""What an embedded store needs in order to remember: rows of nodes, and one number.

A journal keeps, for every node that is not ephemeral, its last committed row. `commit` brings a
set of rows to the disk as one: after a crash either all of them are there or none. Ephemeral nodes
are never in it, because no session outlives the process.

Half of the nodes of a cluster are empty and only there to hold the one child that was created with
them, as `/brokers/topics/<topic>/partitions/0` holds `state`. They have no row: a row whose parent
has none implies that parent, with the row's own time and number of creation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol


class NodeRow(NamedTuple):
    """All that must be kept of a node."""

    path: str
    data: bytes
    version: int
    created_ms: int
    modified_ms: int
    creation_id: int
    #: How many children were ever created below it.
    sequence: int


#: By path, the row to be kept, or None for a node that is gone.
Changes = Mapping[str, NodeRow | None]


class JournalContent(NamedTuple):
    """What was committed last."""

    #: Parents come in front of their children.
    rows: Iterable[NodeRow]
    transaction_id: int


class Journal(Protocol):
    """Where the changes of a store become durable; calls never overlap."""

    async def load(self) -> JournalContent: ...

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        """Return when the changes are durable; StoreWriteError means that none of them is kept."""

    async def close(self) -> None: ...


class NullJournal:
    """Keeps nothing: the store lives as long as the process."""

    async def load(self) -> JournalContent:
        return JournalContent((), 0)

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        pass

    async def close(self) -> None:
        pass
