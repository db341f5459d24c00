"""A machine with one broker: its disk, its clock, and the lives of the broker's process.

Whoever drives it starts the broker, ends it in one of the ways in which brokers end, and starts it
again on what the disk then holds:

    stop          as SIGTERM does: all is left clean
    kill          the process ends, its files stay as they are
    power loss    what was not synced is lost, or torn, or not; also in the middle of an operation
    pause         as SIGSTOP does: nothing of it runs, until it is resumed or killed
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from headwater.base.checks import check
from headwater.base.randomness import SeededRandom
from headwater.broker.environment import BrokerEnvironment, OpenMoveSession, OpenStore
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.broker.start.faults import StartError
from headwater.client.environment import ClientEnvironment
from headwater.delivery.dead_letter_moves import open_session
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faults import CHANGES, PowerCut, SimulatedCrash
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.process import SimulatedProcess
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop

T = TypeVar("T")

#: Makes the way to the metadata store for one life of the broker.
StoreOf = Callable[["BrokerHost", SimulatedProcess], OpenStore]


class BrokerHost:
    def __init__(
        self,
        name: str,
        loop: VirtualLoop,
        trace: Trace,
        random: SeededRandom,
        settings: Mapping[str, str],
        store_of: StoreOf,
        *,
        thread_delay_ms_max: float,
    ) -> None:
        #: Of the host on the network; the broker is called the same.
        self.name = name
        self.life_count = 0
        self.crash_count = 0
        self._boot_count = 0
        #: How long a thread may take to begin, and to be heard of when it is done.
        self.thread_delay_s_max = thread_delay_ms_max / 1000
        self.clock = SimulatedClock(loop)
        self._loop = loop
        self._trace = trace
        self._random = random
        self._settings = dict(settings)
        self._store_of = store_of
        self._disk_random = random.child("disk").generator
        self._thread_random = random.child("threads").generator
        self._process: SimulatedProcess | None = None
        self._server: BrokerServer | None = None
        self._failing: asyncio.Task[Exception] | None = None
        self._cut: PowerCut | None = None
        self.disk = FaultyDisk(self._disk_random.getrandbits(32), clock=self.clock)
        self._watch_disk()

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def serves(self) -> bool:
        """Whether the broker has started, and not ended; it may be paused."""
        return self.is_up and self._failing is not None

    @property
    def is_paused(self) -> bool:
        return self._process is not None and self._process.is_paused

    @property
    def has_failed(self) -> bool:
        """Whether the broker that runs said that it cannot go on."""
        return self._failing is not None and self._failing.done()

    @property
    def server(self) -> BrokerServer:
        """The broker that runs; raises if none does."""
        if self._server is None or not self.is_up:
            raise PropertyViolated(f"no broker runs on {self.name}")
        return self._server

    # -- lives -----------------------------------------------------------------------------------

    async def start(self) -> bool:
        """Start the broker; false if it was ended before it was ready, or could not start."""
        check(not self.is_up, "%s runs already", self.name)
        self.life_count += 1
        name = f"{self.name}, life {self.life_count}"
        process = self._process = self._loop.start_process(name, self.name)
        self._failing = None
        server = self._server = process.run(self._make_server, process, self._random.child(name))
        self._note(f"{name} starts")
        try:
            is_ready = await self._as_broker(server.start())
        except StartError as error:
            self._note(f"{name} cannot start: {error}")
            process.kill()
            self._let_go_of_disk()
            return False
        if is_ready:
            self._failing = process.run(self._loop.create_task, server.wait_failed())
        self._note(f"{name} {'serves' if is_ready else 'is dead'}")
        return is_ready

    async def stop(self) -> bool:
        """Stop it in order; false if it was ended before it was done."""
        self._note("is told to stop")
        process = self._process
        is_done = await self._as_broker(self.server.stop())
        if is_done and process is not None:
            process.kill()
            self._let_go_of_disk()
        return is_done

    def kill(self) -> None:
        """End the process, as kill -9 does."""
        self._note("is killed")
        self._end_process()
        self._cut = None
        self._let_go_of_disk()

    def lose_power(self) -> None:
        """End the process, and let the disk forget what it may forget."""
        self._note("loses its power")
        self._end_process()
        self.disk = self.disk.crash(self._disk_random)
        self._boot_count += 1
        self._cut = None
        self._watch_disk()

    def cut_power_at(self, change_count: int) -> None:
        """Let the process end before the n-th change of the disk from now; `lose_power` follows."""
        self._cut = PowerCut(change_count)

    def pause(self) -> None:
        """Let the process stand still, as SIGSTOP does."""
        self._note("is paused")
        if self._process is not None:
            self._loop.pause_process(self._process)

    def resume(self) -> None:
        self._note("goes on")
        if self._process is not None:
            self._loop.resume_process(self._process)

    def run(self, work: Callable[[], T]) -> T:
        """Call something as the broker's process; raises if none runs."""
        if self._process is None or not self._process.is_alive:
            raise PropertyViolated(f"no broker runs on {self.name}")
        return self._process.run(work)

    async def wait_down(self, timeout_s: float) -> bool:
        """Whether the broker's process ended within that time."""
        end_s = self._loop.time() + timeout_s
        while self.is_up and self._loop.time() < end_s:
            await asyncio.sleep(0.01)
        return not self.is_up

    def _end_process(self) -> None:
        self.crash_count += 1
        if self._process is not None:
            self._process.kill()

    def _let_go_of_disk(self) -> None:
        self.disk = self.disk.after_process_end()
        self._watch_disk()

    async def _as_broker(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run work as the broker's process; false if that ended before the work did."""
        process = self._process
        if process is None or not process.is_alive:
            work.close()
            return False
        task = process.run(self._loop.create_task, work)
        ended = asyncio.Event()
        process.add_kill_callback(ended.set)
        waiting = self._loop.create_task(ended.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not process.is_alive:
            return False
        task.result()
        return True

    def _note(self, event: str) -> None:
        self._trace.note("world", f"{self.name}: {event}")

    # -- what the broker is given ----------------------------------------------------------------

    def _move_sessions(self, random: SeededRandom) -> OpenMoveSession:
        """Dead letters are moved by Headwater's own client, on this host's clock."""
        environment = ClientEnvironment(
            clock=self.clock, generator=random.child("dead letters").generator
        )
        return lambda address, source: open_session(address, source, environment)

    def _make_server(self, process: SimulatedProcess, random: SeededRandom) -> BrokerServer:
        environment = BrokerEnvironment(
            files=self.disk,
            clock=self.clock,
            random=random,
            draw_secret_bytes=random.child("secrets").generator.randbytes,
            open_store=self._store_of(self, process),
            run_in_thread=self.run_in_thread,
            boot_id=f"{self.name}, boot {self._boot_count}",
            open_move_session=self._move_sessions(random),
        )
        return BrokerServer(static_of(self._settings, "the simulation"), environment)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """A thread begins when it gets its turn, and is heard of some time after it is done."""
        await asyncio.sleep(self._thread_random.random() * self.thread_delay_s_max)
        result = work()
        await asyncio.sleep(self._thread_random.random() * self.thread_delay_s_max)
        return result

    def _watch_disk(self) -> None:
        self.disk.before_operation = self._before_operation

    def _before_operation(self, operation: str, path: str) -> None:
        if operation in CHANGES:
            self._trace.note("disk", f"{self.name} {operation} {path}")
        if self._cut is None:
            return
        try:
            self._cut(operation, path)
        except SimulatedCrash:
            # From this moment on nothing of the process may be seen, on the network either.
            self._end_process()
            raise
