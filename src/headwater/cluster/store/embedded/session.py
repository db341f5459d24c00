"""One client's session with the embedded store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from headwater.cluster.store.errors import SessionExpiredError
from headwater.cluster.store.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    Node,
    Operation,
    Result,
    Set,
    Watch,
)
from headwater.cluster.store.node_paths import ROOT

if TYPE_CHECKING:
    from headwater.cluster.store.embedded.store import EmbeddedStore


class EmbeddedSession:
    """A `MetadataStore` on a tree in this process; `EmbeddedStore.connect` makes it."""

    def __init__(self, store: EmbeddedStore, session_id: int) -> None:
        self._store = store
        self._session_id = session_id
        #: Set by the store when the session has ended.
        self.is_over = False
        self._expired_callbacks: list[Callable[[], None]] = []

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def timeout_s(self) -> float | None:
        return None

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        return cast(str, await self._write(Create(path, data, ephemeral, sequence)))

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        def read() -> Node:
            node = self._store.tree.get(path)
            self._watch_node(path, watch)
            return node

        self._check_open(path)
        return await self._store.read(read)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        self._check_open(paths[0] if paths else ROOT)
        exists = self._store.tree.exists
        return await self._store.read(lambda: [exists(path) for path in paths])

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return cast(int, await self._write(Set(path, data, version)))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._write(Delete(path, version))

    async def exists(self, path: str, watch: Watch | None = None) -> Node | None:
        def read() -> Node | None:
            node = self._store.tree.exists(path)
            self._watch_node(path, watch)
            return node

        self._check_open(path)
        return await self._store.read(read)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        def read() -> list[str]:
            names = self._store.tree.children(path)
            if watch is not None and not self.is_over:
                self._store.watches.watch_children(self._session_id, path, watch)
            return names

        self._check_open(path)
        return await self._store.read(read)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        store = self._store
        self._check_open(operations[0].path if operations else ROOT)
        applied = await store.write(
            lambda: store.tree.apply(operations, self._session_id, store.now_ms())
        )
        return applied.results

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._expired_callbacks.append(callback)

    def expired(self) -> None:
        """The store has ended the session; tell whoever wants to know."""
        for callback in self._expired_callbacks:
            callback()

    async def close(self) -> None:
        self._expired_callbacks.clear()
        await self._store.expire(self._session_id)

    async def _write(self, operation: Operation) -> Result:
        return (await self.multi([operation]))[0]

    def _watch_node(self, path: str, watch: Watch | None) -> None:
        if watch is not None and not self.is_over:
            self._store.watches.watch_node(self._session_id, path, watch)

    def _check_open(self, path: str) -> None:
        if self.is_over:
            raise SessionExpiredError(path)
