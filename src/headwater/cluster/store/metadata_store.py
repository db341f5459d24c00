"""The interface of a metadata store, with ZooKeeper's semantics.

A store holds a tree of nodes. A node has data, a version that counts its changes, and children; it
is named by its path, as in `/brokers/ids/0`. What a cluster must agree on is decided by creating a
node that only one can create, or by changing a node on condition that its version is the one that
was read. `multi` makes several such operations one: all of them happen or none.

Every client has a session. Ephemeral nodes go when the session of their creator ends, which is how
others learn that it is gone. A watch is left behind by a read and is called once, when what was
read changes; whoever wants to hear of the next change reads again. Of one session's watches and
answers, the watch comes before any answer that shows the change.

Operations of one session take effect in the order in which they were called. An operation that has
returned is durable. All of them raise the errors in `errors`, SessionExpiredError among them. Reads
are repeated while a store cannot be reached; a write of which it is not known whether it was done
raises UncertainWriteError, and whoever wrote has to look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

#: As the expected version of a node: whatever it is.
ANY_VERSION: Final = -1


class Node(NamedTuple):
    """A node as it was when it was read."""

    data: bytes
    version: int
    created_ms: int
    modified_ms: int
    #: The session that an ephemeral node belongs to; 0 if it is not one.
    ephemeral_owner: int
    #: The number of the transaction that created the node. It grows with every transaction of the
    #: store and is never used again, not even after a restart.
    creation_id: int


class Create(NamedTuple):
    """Make a node below one that exists; a sequence number may be appended to its name."""

    path: str
    data: bytes
    ephemeral: bool = False
    sequence: bool = False


class Set(NamedTuple):
    """Replace a node's data."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node without children."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Require that a node exists and has this version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | Set | Delete | Check

#: Of a Create its path, of a Set the new version, of the others nothing.
Result = str | int | None


class WatchKind(Enum):
    """What happened to a watched node."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


class WatchEvent(NamedTuple):
    """What a watch is called with."""

    kind: WatchKind
    path: str


Watch = Callable[[WatchEvent], None]


class MetadataStore(Protocol):
    """One session with a store."""

    @property
    def session_id(self) -> int: ...

    @property
    def timeout_s(self) -> float | None:
        """After so long without a word from its owner the store may end it; None is never."""

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Make a node and return its path, which with `sequence` ends in ten more digits.

        The numbers that a parent gives out only ever grow, also across restarts.
        """

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        """The node; the watch is called when it changes or is deleted."""

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes in that order, None for those that do not exist, in few round trips.

        They need not all be of the same moment.
        """

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the data if the version fits, and return the new version."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if the version fits."""

    async def exists(self, path: str, watch: Watch | None = None) -> Node | None:
        """The node, if there is one; the watch is called when it comes, changes or goes."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names below a node, sorted; the watch is called when one comes or goes."""

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations or, if one cannot be done, none, and raise its error."""

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Have it called, once and from the event loop, if the store ends the session.

        After that every operation raises SessionExpiredError; `close` calls nothing.
        """

    async def close(self) -> None:
        """End the session: its ephemeral nodes go, its watches are forgotten."""


class StoreConnector(Protocol):
    """The way to a store: whoever has lost a session begins another."""

    async def connect(self) -> MetadataStore:
        """Begin a session, waiting for the store as long as that takes."""

    async def close(self) -> None:
        """End all sessions and let go of the store."""
