"""One embedded metadata store for all brokers of this process.

Each broker opens it as if it were its own and gets a connector that leaves it open; it is closed
by whoever made it. The brokers' sessions end with the brokers.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.start.faults import StartError
from headwater.broker.worker_pool import WorkerPool
from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore

_THREADS: Final = 1


class SharedStore:
    """Opened by the first broker that asks, in a thread of its own."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, METADATA_FILE)
        self._pool = WorkerPool("metadata", _THREADS)
        self._opening = asyncio.Lock()
        self._store: EmbeddedStore | None = None

    async def open(
        self, _settings: BrokerSettings, _directory: str, clock: Clock, _run: RunInThread
    ) -> EmbeddedConnector:
        """What `BrokerEnvironment.open_store` wants."""
        async with self._opening:
            if self._store is None:
                await self._make_directory()
                journal = SqliteJournal(self.path, self._pool.run)
                self._store = await EmbeddedStore.open(journal, clock)
        return EmbeddedConnector(self._store, is_owner=False)

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        self._pool.close()

    async def _make_directory(self) -> None:
        directory = os.path.dirname(self.path)
        try:
            await self._pool.run(lambda: os.makedirs(directory, exist_ok=True))
        except OSError as error:
            raise StartError(
                f"The data directory {directory} cannot be used: {error.strerror}."
            ) from error
