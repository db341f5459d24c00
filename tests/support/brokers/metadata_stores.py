"""The metadata stores that the contract's tests run on, each behind the same few calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from kazoo.client import KazooClient

from headwater.base.clocks import Clock, SystemClock
from headwater.cluster.store.embedded.journal import Changes, JournalContent, NodeRow, NullJournal
from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.store.zookeeper.connector import ZooKeeperConnector
from headwater.cluster.store.zookeeper.store import ZooKeeperStore
from tests.support.brokers.simulated_store import linked_world
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper


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


class ZooKeeperWorld:
    """A path of its own on the shared ZooKeeper server."""

    def __init__(self) -> None:
        self.address = shared_zookeeper().address + fresh_chroot()
        self._connectors: list[ZooKeeperConnector] = []

    async def connect(self) -> ZooKeeperStore:
        connector = ZooKeeperConnector(self.address, session_timeout_ms=10_000)
        self._connectors.append(connector)
        return await connector.connect()

    async def expire(self, session: MetadataStore) -> None:
        assert isinstance(session, ZooKeeperStore)
        over = asyncio.Event()
        session.on_expired(over.set)
        await end_session(session)
        await over.wait()

    async def close(self) -> None:
        await asyncio.gather(*(connector.close() for connector in self._connectors))


async def end_session(session: ZooKeeperStore) -> None:
    """Have ZooKeeper end a session: whoever knows its password can take it over and close it."""

    def take_over() -> None:
        client = KazooClient(
            hosts=shared_zookeeper().address, client_id=session.credentials, timeout=10.0
        )
        client.start()
        client.stop()
        client.close()

    await asyncio.to_thread(take_over)


@asynccontextmanager
async def zookeeper_world(directory: Path) -> AsyncIterator[StoreWorld]:
    world = ZooKeeperWorld()
    try:
        yield world
    finally:
        await world.close()


OpenWorld = Callable[[Path], AbstractAsyncContextManager[StoreWorld]]

#: By name, every store that must keep the contract.
WORLDS: dict[str, OpenWorld] = {
    "memory": memory_world,
    "sqlite": sqlite_world,
    "zookeeper": zookeeper_world,
    "simulated": linked_world,
}
