"""A world with one broker in it: real broker code on virtual time, a faulty disk and a bad network.

One seed decides everything. The trace holds what went over the network and which operations reached
the disk; two runs of a seed have the same trace. See `broker_host` for how a broker lives and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.broker.environment import OpenStore
from headwater.broker.server import BrokerServer
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore
from headwater.sim.broker_host import BrokerHost
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.disk.file_journal import FileJournal
from headwater.sim.process import SimulatedProcess
from headwater.sim.world import SimulatedWorld

HOST: Final = "broker"
PORT: Final = 9092
DATA: Final = "/data"
#: What needs threads and processes of the operating system is left out.
SIMULATED_SETTINGS: Final = {
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.enable": "false",
    "log.dir.reserve.bytes": "0",
}
_SETTINGS: Final = {
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": DATA,
    "broker.id": "0",
    **SIMULATED_SETTINGS,
}


class BrokerWorld(SimulatedWorld):
    def __init__(
        self,
        seed: int,
        settings: Mapping[str, str] | None = None,
        *,
        timer_lateness_ms: float = 2.0,
        thread_delay_ms_max: float = 3.0,
    ) -> None:
        super().__init__(seed, timer_lateness_ms=timer_lateness_ms)
        self.host = BrokerHost(
            HOST,
            self.loop,
            self.trace,
            self.random,
            {**_SETTINGS, **(settings or {})},
            _own_store,
            thread_delay_ms_max=thread_delay_ms_max,
        )

    # -- the broker ------------------------------------------------------------------------------

    @property
    def disk(self) -> FaultyDisk:
        return self.host.disk

    @property
    def clock(self) -> SimulatedClock:
        return self.host.clock

    @property
    def crash_count(self) -> int:
        return self.host.crash_count

    @property
    def is_up(self) -> bool:
        return self.host.is_up

    @property
    def has_failed(self) -> bool:
        """Whether the broker that runs said that it cannot go on."""
        return self.host.has_failed

    @property
    def server(self) -> BrokerServer:
        """The broker that runs; raises if none does."""
        return self.host.server

    async def start_broker(self) -> bool:
        """Start the broker; false if the power went before it was ready."""
        return await self.host.start()

    async def stop_broker(self) -> bool:
        """Stop it in order; false if the power went before it was done."""
        return await self.host.stop()

    def kill_broker(self) -> None:
        self.host.kill()

    def lose_power(self) -> None:
        self.host.lose_power()

    def cut_power_at(self, change_count: int) -> None:
        """Let the process end before the n-th change of the disk from now; `lose_power` follows."""
        self.host.cut_power_at(change_count)

    async def wait_down(self, timeout_s: float) -> bool:
        """Whether the broker's process ended within that time."""
        return await self.host.wait_down(timeout_s)

    # -- clients ---------------------------------------------------------------------------------

    def start_client(self, kind: str) -> tuple[SimulatedProcess, BrokerLink]:
        """A process on a host of its own, and its way to the broker."""
        process = self.start_client_process(kind)
        random = self.random.child(process.name).generator
        link = BrokerLink(process.name, (HOST, PORT), random, timeout_s=random.choice((2.0, 10.0)))
        return process, link


def _own_store(host: BrokerHost, _process: SimulatedProcess) -> OpenStore:
    """The metadata store lies on the broker's own disk, and is torn as its logs are."""

    async def open_store(
        _settings: BrokerSettings, directory: str, clock: Clock, run_in_thread: RunInThread
    ) -> EmbeddedConnector:
        journal = FileJournal(host.disk, directory, run_in_thread)
        return EmbeddedConnector(await EmbeddedStore.open(journal, clock))

    return open_store
