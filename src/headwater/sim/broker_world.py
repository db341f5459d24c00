"""A world with one broker in it: real broker code on virtual time, a faulty disk and a bad network.

Whoever drives it starts the broker, ends it in one of the ways in which brokers end, and starts it
again on what the disk then holds:

    stop          as SIGTERM does: all is left clean
    kill          the process ends, its files stay as they are
    power loss    what was not synced is lost, or torn, or not; also in the middle of an operation

One seed decides everything. The trace holds what went over the network and which operations reached
the disk; two runs of a seed have the same trace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from headwater.base.checks import check
from headwater.base.clocks import Clock
from headwater.base.randomness import SeededRandom
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.store.embedded_store import EmbeddedStore
from headwater.sim.broker_link import BrokerLink
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk_faults import CHANGES, PowerCut, SimulatedCrash
from headwater.sim.faulty_disk import FaultyDisk
from headwater.sim.file_journal import FileJournal
from headwater.sim.history import History, PropertyViolated
from headwater.sim.network import SimulatedNetwork
from headwater.sim.process import SimulatedProcess
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop
from headwater.storage.flush import RunInThread

T = TypeVar("T")

HOST: Final = "broker"
PORT: Final = 9092
DATA: Final = "/data"
_SETTINGS: Final = {
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": DATA,
    "broker.id": "0",
    # Both would need threads and processes of the operating system.
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.enable": "false",
}


class BrokerWorld:
    def __init__(
        self,
        seed: int,
        settings: Mapping[str, str] | None = None,
        *,
        timer_lateness_ms: float = 2.0,
        thread_delay_ms_max: float = 3.0,
    ) -> None:
        self.seed = seed
        self.random = SeededRandom(seed)
        self.loop = VirtualLoop(
            self.random.child("loop").generator, timer_lateness_ms=timer_lateness_ms
        )
        self.trace = Trace(self.loop.time)
        self.network = SimulatedNetwork(self.loop, self.random.child("network"), self.trace)
        self.clock = SimulatedClock(self.loop)
        self.history = History()
        self.failures: list[logging.LogRecord] = []
        self.life_count = 0
        self.crash_count = 0
        self._settings = {**_SETTINGS, **(settings or {})}
        self._thread_delay_s_max = thread_delay_ms_max / 1000
        self._disk_random = self.random.child("disk").generator
        self._thread_random = self.random.child("threads").generator
        self._client_count = 0
        self._process: SimulatedProcess | None = None
        self._server: BrokerServer | None = None
        self._failing: asyncio.Task[Exception] | None = None
        self._cut: PowerCut | None = None
        self._log_handler = _FailureHandler(self.failures)
        logging.getLogger("headwater").addHandler(self._log_handler)
        self.disk = FaultyDisk(self._disk_random.getrandbits(32), clock=self.clock)
        self._watch_disk()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the driver of this world to its end."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        # What the dead still log when they are buried goes nowhere.
        self.loop.close()
        logging.getLogger("headwater").removeHandler(self._log_handler)

    # -- the broker's life -----------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def has_failed(self) -> bool:
        """Whether the broker that runs said that it cannot go on."""
        return self._failing is not None and self._failing.done()

    @property
    def server(self) -> BrokerServer:
        """The broker that runs; raises if none does."""
        if self._server is None or not self.is_up:
            raise PropertyViolated("no broker runs")
        return self._server

    async def start_broker(self) -> bool:
        """Start the broker; false if the power went before it was ready."""
        check(not self.is_up, "the broker runs already")
        self.life_count += 1
        name = f"broker, life {self.life_count}"
        process = self._process = self.loop.start_process(name, HOST)
        server = self._server = process.run(self._make_server, self.random.child(name))
        self.trace.note("world", f"{name} starts")
        is_ready = await self._as_broker(server.start())
        if is_ready:
            self._failing = process.run(self.loop.create_task, server.wait_failed())
        self.trace.note("world", f"{name} {'serves' if is_ready else 'is dead'}")
        return is_ready

    async def stop_broker(self) -> bool:
        """Stop it in order; false if the power went before it was done."""
        self.trace.note("world", "the broker is told to stop")
        is_done = await self._as_broker(self.server.stop())
        if is_done and self._process is not None:
            self._process.kill()
            self.disk = self.disk.after_process_end()
            self._watch_disk()
        return is_done

    def kill_broker(self) -> None:
        """End the process, as kill -9 does."""
        self.trace.note("world", "the broker is killed")
        self._end_process()
        self.disk = self.disk.after_process_end()
        self._watch_disk()

    def lose_power(self) -> None:
        """End the process, and let the disk forget what it may forget."""
        self.trace.note("world", "the power goes")
        self._end_process()
        self.disk = self.disk.crash(self._disk_random)
        self._cut = None
        self._watch_disk()

    def _end_process(self) -> None:
        self.crash_count += 1
        if self._process is not None:
            self._process.kill()

    def cut_power_at(self, change_count: int) -> None:
        """Let the process end before the n-th change of the disk from now; `lose_power` follows."""
        self._cut = PowerCut(change_count)

    async def wait_down(self, timeout_s: float) -> bool:
        """Whether the broker's process ended within that time."""
        end_s = self.loop.time() + timeout_s
        while self.is_up and self.loop.time() < end_s:
            await asyncio.sleep(0.01)
        return not self.is_up

    async def _as_broker(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run work as the broker's process; false if that ended before the work did."""
        process = self._process
        if process is None or not process.is_alive:
            work.close()
            return False
        task = process.run(self.loop.create_task, work)
        ended = asyncio.Event()
        process.add_kill_callback(ended.set)
        waiting = self.loop.create_task(ended.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not process.is_alive:
            return False
        task.result()
        return True

    # -- what the broker is given ----------------------------------------------------------------

    def _make_server(self, random: SeededRandom) -> BrokerServer:
        environment = BrokerEnvironment(
            files=self.disk,
            clock=self.clock,
            random=random,
            open_store=self._open_store,
            run_in_thread=self.run_in_thread,
        )
        return BrokerServer(static_of(self._settings, "the simulation"), environment)

    async def _open_store(
        self, directory: str, clock: Clock, run_in_thread: RunInThread
    ) -> EmbeddedStore:
        return await EmbeddedStore.open(FileJournal(self.disk, directory, run_in_thread), clock)

    async def run_in_thread(self, work: Callable[[], None]) -> None:
        """A thread begins when it gets its turn, and is heard of some time after it is done."""
        await asyncio.sleep(self._thread_random.random() * self._thread_delay_s_max)
        work()
        await asyncio.sleep(self._thread_random.random() * self._thread_delay_s_max)

    def _watch_disk(self) -> None:
        self.disk.before_operation = self._before_operation

    def _before_operation(self, operation: str, path: str) -> None:
        if operation in CHANGES:
            self.trace.note("disk", f"{operation} {path}")
        if self._cut is None:
            return
        try:
            self._cut(operation, path)
        except SimulatedCrash:
            # From this moment on nothing of the process may be seen, on the network either.
            self._end_process()
            raise

    # -- clients ---------------------------------------------------------------------------------

    def start_client(self, kind: str) -> tuple[SimulatedProcess, BrokerLink]:
        """A process on a host of its own, and its way to the broker."""
        self._client_count += 1
        name = f"{kind}-{self._client_count}"
        random = self.random.child(name).generator
        link = BrokerLink(name, (HOST, PORT), random, timeout_s=random.choice((2.0, 10.0)))
        return self.loop.start_process(name, name), link

    def check_no_failure(self) -> None:
        """Nothing failed without anybody being told."""
        for happened in self.loop.unhandled:
            raise PropertyViolated(f"nothing fails unnoticed: {happened}") from happened.get(
                "exception"
            )
        for record in self.failures:
            error = record.exc_info[1] if record.exc_info else None
            raise PropertyViolated(f"nothing fails: {record.getMessage()}") from error


class _FailureHandler(logging.Handler):
    """Keeps what the broker logs with a traceback: that is never a peer's fault."""

    def __init__(self, failures: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, SimulatedCrash):
            self._failures.append(record)
