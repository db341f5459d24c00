"""A world with several brokers: real broker code, each on a machine of its own, one store for all.

The metadata store stands outside: it outlives every broker and never fails, but brokers may be cut
off from it, and their sessions may end. One seed decides everything, as in `broker_world`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.broker.environment import OpenStore
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.sim.broker_host import BrokerHost
from headwater.sim.broker_world import DATA, PORT, SIMULATED_SETTINGS
from headwater.sim.clients.cluster_link import ClusterLink
from headwater.sim.clock import SimulatedClock
from headwater.sim.cluster_observer import ClusterObserver
from headwater.sim.process import SimulatedProcess
from headwater.sim.store.connection import STORE_HOST
from headwater.sim.store.service import StoreService
from headwater.sim.store.session import LinkedConnector
from headwater.sim.world import SimulatedWorld

BROKER_COUNT: Final = 3


class ClusterWorld(SimulatedWorld):
    def __init__(
        self,
        seed: int,
        settings: Mapping[str, str] | None = None,
        *,
        broker_count: int = BROKER_COUNT,
        timer_lateness_ms: float = 2.0,
        thread_delay_ms_max: float = 3.0,
        is_cautious: bool = False,
    ) -> None:
        super().__init__(seed, timer_lateness_ms=timer_lateness_ms)
        #: A clock that is right, for the store and for clients.
        self.clock = SimulatedClock(self.loop)
        self.store = StoreService(self.network, self.clock)
        self._is_cautious = is_cautious
        self.hosts = [
            BrokerHost(
                f"broker-{number}",
                self.loop,
                self.trace,
                self.random.child(f"host {number}"),
                {
                    "listeners": f"PLAINTEXT://broker-{number}:{PORT}",
                    "log.dirs": DATA,
                    "broker.id": str(number),
                    **SIMULATED_SETTINGS,
                    **(settings or {}),
                },
                self._store_of,
                thread_delay_ms_max=thread_delay_ms_max,
            )
            for number in range(broker_count)
        ]
        self.observer = ClusterObserver(self.hosts, DATA, self.history, self.trace)
        self.store.observers.append(self.observer.store_changed)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(host.name, PORT) for host in self.hosts]

    @property
    def crash_count(self) -> int:
        return sum(host.crash_count for host in self.hosts)

    # -- brokers ---------------------------------------------------------------------------------

    def expire_session(self, host: BrokerHost) -> None:
        """End the store's sessions with a broker, however well it is."""
        for session_id in self.store.session_ids_of(host.name):
            self.store.expire(session_id)

    def cut_off(self, host: BrokerHost, others: Iterable[str]) -> list[tuple[str, str]]:
        """Cut a broker off from other hosts; returns what `mend` takes."""
        cuts = [pair for other in others for pair in ((host.name, other), (other, host.name))]
        for source, target in cuts:
            self.network.cut(source, target)
        return cuts

    def mend(self, cuts: Iterable[tuple[str, str]]) -> None:
        for source, target in cuts:
            self.network.mend(source, target)

    def other_brokers(self, host: BrokerHost) -> list[str]:
        return [other.name for other in self.hosts if other is not host]

    @property
    def store_host(self) -> str:
        return STORE_HOST

    def _store_of(self, host: BrokerHost, process: SimulatedProcess) -> OpenStore:
        async def open_store(
            settings: BrokerSettings, _directory: str, _clock: Clock, _run_in_thread: RunInThread
        ) -> LinkedConnector:
            timeout_s = settings.integer("zookeeper.session.timeout.ms") / 1000
            return LinkedConnector(self.store, process, timeout_s, is_cautious=self._is_cautious)

        return open_store

    # -- clients ---------------------------------------------------------------------------------

    def start_client(
        self, kind: str, partition: TopicPartition | None = None
    ) -> tuple[SimulatedProcess, ClusterLink]:
        """A process on a host of its own, and its way to any broker or to a partition's leader."""
        process = self.start_client_process(kind)
        random = self.random.child(process.name).generator
        timeout_s = random.choice((2.0, 10.0))
        return process, ClusterLink(process.name, self.addresses, random, timeout_s, partition)
