"""A simulated metadata store and its clients, without brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from headwater.base.clocks import SystemClock
from headwater.base.randomness import SeededRandom
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.sim.clock import SimulatedClock
from headwater.sim.network.network import SimulatedNetwork
from headwater.sim.process import SimulatedProcess
from headwater.sim.store.service import StoreService
from headwater.sim.store.session import LinkedConnector, LinkedSession
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from tests.support.brokers.metadata_stores import StoreWorld

T = TypeVar("T")

TIMEOUT_S = 6.0


class StoreStage:
    """The store and a network to it, on virtual time."""

    def __init__(self, seed: int = 1) -> None:
        random = SeededRandom(seed)
        self.loop = VirtualLoop(random.child("loop").generator, timer_lateness_ms=2.0)
        self.trace = Trace(self.loop.time)
        self.network = SimulatedNetwork(self.loop, random.child("network"), self.trace)
        self.service = StoreService(self.network, SimulatedClock(self.loop))

    def process(self, host: str) -> SimulatedProcess:
        return self.loop.start_process(host, host)

    async def connect(
        self, process: SimulatedProcess, *, is_cautious: bool = False
    ) -> LinkedSession:
        connector = LinkedConnector(self.service, process, TIMEOUT_S, is_cautious=is_cautious)
        return await process.run(self.loop.create_task, connector.connect())

    def start(self, process: SimulatedProcess, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let a process do something."""
        return process.run(self.loop.create_task, work)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self.loop.run_until_complete(work)
        finally:
            assert not self.loop.unhandled
            self.loop.close()


class _LinkedWorld:
    def __init__(self) -> None:
        # A plain event loop does for this as well: the contract is tested in real time.
        loop = cast(VirtualLoop, asyncio.get_running_loop())
        network = SimulatedNetwork(loop, SeededRandom(1), Trace(loop.time))
        self.service = StoreService(network, SystemClock())
        self._connector = LinkedConnector(
            self.service, SimulatedProcess("client", "client"), 3.0, is_cautious=False
        )

    async def connect(self) -> MetadataStore:
        return await self._connector.connect()

    async def expire(self, session: MetadataStore) -> None:
        over = asyncio.Event()
        session.on_expired(over.set)
        self.service.expire(session.session_id)
        await over.wait()

    async def close(self) -> None:
        await self._connector.close()


@asynccontextmanager
async def linked_world(directory: Path) -> AsyncIterator[StoreWorld]:
    """The simulated store for the tests of the contract."""
    world = _LinkedWorld()
    try:
        yield world
    finally:
        await world.close()
