"""The metadata stores that the contract's tests run on, each behind the same few calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from headwater.base.clocks import Clock, SystemClock
from headwater.cluster.store.embedded_store import EmbeddedStore
from headwater.cluster.store.journal import Changes, JournalContent, NodeRow, NullJournal
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.store.sqlite_journal import METADATA_FILE, SqliteJournal


class StoreWorld(Protocol):
    """A store with the means to disturb it."""

    async def connect(self) -> MetadataStore:
        """A new session."""

    async def expire(self, session: MetadataStore) -> None:
        """End a session from the store's side."""


class EmbeddedWorld:
    """An embedded store; a kept one can be closed and opened again."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store

    async def connect(self) -> MetadataStore:
        return self.store.connect()

    async def expire(self, session: MetadataStore) -> None:
        await self.store.expire(session.session_id)


class DictJournal:
    """Keeps the rows in memory, so that a store can be opened on them again."""

    def __init__(self) -> None:
        self.rows: dict[str, NodeRow] = {}
        self.transaction_id = 0

    async def load(self) -> JournalContent:
        return JournalContent([self.rows[path] for path in sorted(self.rows)], self.transaction_id)

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        for path, row in changes.items():
            if row is None:
                self.rows.pop(path, None)
            else:
                self.rows[path] = row
        self.transaction_id = transaction_id

    async def close(self) -> None:
        pass


async def open_sqlite(directory: Path, clock: Clock | None = None) -> EmbeddedStore:
    """The embedded store as a broker opens it."""
    journal = SqliteJournal(f"{directory}/{METADATA_FILE}", asyncio.to_thread)
    return await EmbeddedStore.open(journal, clock or SystemClock())


async def open_in_memory(clock: Clock | None = None) -> EmbeddedStore:
    """An embedded store that keeps nothing."""
    return await EmbeddedStore.open(NullJournal(), clock or SystemClock())


@asynccontextmanager
async def memory_world(directory: Path) -> AsyncIterator[StoreWorld]:
    store = await open_in_memory()
    try:
        yield EmbeddedWorld(store)
    finally:
        await store.close()


@asynccontextmanager
async def sqlite_world(directory: Path) -> AsyncIterator[StoreWorld]:
    store = await open_sqlite(directory)
    try:
        yield EmbeddedWorld(store)
    finally:
        await store.close()


OpenWorld = Callable[[Path], AbstractAsyncContextManager[StoreWorld]]

#: By name, every store that must keep the contract.
WORLDS: dict[str, OpenWorld] = {"memory": memory_world, "sqlite": sqlite_world}
