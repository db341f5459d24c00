"""An asyncio event loop on virtual time: nothing waits, and one seed decides the order of events.

When nothing is ready, time jumps to the next timer, so hours of timeouts pass in milliseconds. The
loop is a plain asyncio loop in all else: callbacks run in the order in which they were scheduled.
Timers may be late, as they are on any real loop, by an amount that the seed decides; that is what
makes one seed's interleaving differ from another's.

What would bring in the outside world is refused: other threads, sockets, name lookup, child
processes. Work for an executor runs at once, in place. If nothing is ready and no timer is set
while somebody waits, nothing can ever happen: that is a `SimulationDeadlock`. If callbacks keep
each other busy and time does not move, it is a `SimulationLivelock`.

Work belongs to a process, see `process`; what a dead one left in the queues is dropped, and what a
paused one has there is set aside until it is resumed. Failures
that nobody is told of, in callbacks or in tasks without an owner, are kept in `unhandled`, for the
simulation to fail by.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import threading
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, TypeVarTuple

from headwater.base.checks import check
from headwater.sim.disk.faults import SimulatedCrash
from headwater.sim.process import SimulatedProcess, process_in

if TYPE_CHECKING:
    from headwater.sim.network.network import SimulatedNetwork, SimulatedServer

T = TypeVar("T")
HandleT = TypeVar("HandleT", bound=asyncio.Handle)
Arguments = TypeVarTuple("Arguments")

#: Rounds of the loop at one moment of virtual time: a broker's busiest moment takes some hundreds.
ROUNDS_AT_ONE_TIME_MAX: Final = 200_000


class SimulationDeadlock(Exception):
    """Somebody waits, and nothing can happen any more."""


class SimulationLivelock(Exception):
    """Callbacks keep each other busy without time passing."""


class OutsideWorldError(Exception):
    """Simulated code reached for something that a seed cannot decide."""


class _NoSelector:
    """Stands where the loop asks the operating system to wait: here the time passes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> Sequence[object]:
        self._loop.pass_time(timeout)
        return ()

    def close(self) -> None:
        """There is nothing to close."""


class VirtualLoop(BaseEventLoop):
    # The parts of the base class that this one builds upon, which its type stubs do not mention.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self, random: Random | None = None, *, timer_lateness_ms: float = 0.0) -> None:
        super().__init__()
        self._random = random
        self._timer_lateness_s = timer_lateness_ms / 1000
        self._now_s = 0.0
        self._clock_resolution = 1e-9
        self._rounds_at_this_time = 0
        self._thread = threading.get_ident()
        self._selector = _NoSelector(self)
        self._processes: list[SimulatedProcess] = []
        #: What belongs to paused processes, and which of them there are.
        self._paused: list[SimulatedProcess] = []
        self._held_ready: list[asyncio.Handle] = []
        self._held_timers: list[asyncio.TimerHandle] = []
        #: Where connections are made; none can be made without it.
        self.network: SimulatedNetwork | None = None
        self.unhandled: list[dict[str, Any]] = []
        self.set_exception_handler(_keep_unhandled)
        self.set_task_factory(_adopting_task)  # type: ignore[arg-type]  # The stub lacks `context`.

    # -- time ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now_s

    def pass_time(self, timeout_s: float | None) -> None:
        """Nothing is ready for so long; None is for ever."""
        if timeout_s is None:
            waiting = sorted(_place(task) for task in asyncio.all_tasks(self))
            raise SimulationDeadlock(
                f"At {self._now_s:.3f} s nothing is ready and no timer is set, while these wait: "
                + ("; ".join(waiting) or "none")
            )
        if timeout_s > 0:
            self._now_s += timeout_s
            self._rounds_at_this_time = 0
            return
        self._rounds_at_this_time += 1
        if self._rounds_at_this_time > ROUNDS_AT_ONE_TIME_MAX:
            busy = [repr(handle) for handle in list(self._ready)[:3]]
            raise SimulationLivelock(f"At {self._now_s:.3f} s time stands still because of {busy}")

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = super().call_soon(callback, *args, context=context)
        if _is_dead(process_in(context)):
            handle.cancel()
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        if self._random is not None and self._timer_lateness_s:
            when += self._random.random() * self._timer_lateness_s
        handle = super().call_at(when, callback, *args, context=context)
        if _is_dead(process_in(context)):
            handle.cancel()
        return handle

    # -- processes -------------------------------------------------------------------------------

    def start_process(self, name: str, host: str) -> SimulatedProcess:
        process = SimulatedProcess(name, host)
        process.add_kill_callback(self._drop_dead)
        self._processes.append(process)
        return process

    def _drop_dead(self) -> None:
        # Cancelled and not removed: this may happen while the loop walks through the queue.
        for handle in (*self._ready, *self._scheduled):
            if not handle.cancelled() and _is_dead(_process_of(handle)):
                handle.cancel()

    def pause_process(self, process: SimulatedProcess) -> None:
        """Let a process stand still from the next round on, as SIGSTOP does."""
        check(process.is_alive and not process.is_paused, "%s does not run", process.name)
        process.is_paused = True
        self._paused.append(process)

    def resume_process(self, process: SimulatedProcess) -> None:
        """Let it go on: what became due meanwhile happens at once."""
        if not process.is_paused:
            return  # It was killed while it was paused.
        process.is_paused = False
        self._paused.remove(process)
        for timer in self._take_held(self._held_timers, process):
            heapq.heappush(self._scheduled, timer)
        self._ready.extend(self._take_held(self._held_ready, process))
        process.resume_deliveries()

    def _take_held(self, held: list[HandleT], process: SimulatedProcess) -> list[HandleT]:
        taken = [handle for handle in held if _process_of(handle) is process]
        held[:] = [handle for handle in held if _process_of(handle) is not process]
        return taken

    def _run_once(self) -> None:
        if self._paused:
            self._hold_back()
        super()._run_once()  # type: ignore[misc]  # The stub does not mention it.

    def _hold_back(self) -> None:
        """Set aside what paused processes have in the queues."""
        self._paused = [process for process in self._paused if process.is_paused]
        ready = list(self._ready)
        self._ready.clear()
        for handle in ready:
            (self._held_ready if _is_paused(handle) else self._ready).append(handle)
        timers = [handle for handle in self._scheduled if _is_paused(handle)]
        if timers:
            self._held_timers += timers
            self._scheduled[:] = [each for each in self._scheduled if not _is_paused(each)]
            heapq.heapify(self._scheduled)

    # -- the outside world -----------------------------------------------------------------------

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread:
            raise OutsideWorldError("Another thread cannot take part in a simulation.")
        return self.call_soon(callback, *args, context=context)

    # The parameter lists of these are the base class's, which leaves them untyped for the most.
    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run it here and now: a thread would take no virtual time, and could be anywhere."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        **options: object,
    ) -> SimulatedServer:
        """Listen on the simulated network, on the host of the process that asks."""
        if self.network is None or options.get("sock") is not None:
            raise OutsideWorldError("There are no sockets in a simulation.")
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        **options: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect through the simulated network, from the host of the process that asks."""
        if self.network is None or host is None or port is None:
            raise OutsideWorldError("There are no sockets in a simulation.")
        return await self.network.connect(protocol_factory, host, port)

    async def getaddrinfo(self, *_: object, **__: object) -> NoReturn:
        raise OutsideWorldError("There is no name server in a simulation.")

    def _write_to_self(self) -> None:
        """Nothing sleeps in the operating system, so nothing has to be woken."""

    def _process_events(self, _event_list: Sequence[object]) -> None:
        """The operating system has none to report."""

    # -- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill and bury every process, and forget what else was going on."""
        if self.is_closed():
            return
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.bury()
        self._processes.clear()
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        super().close()

    def __del__(self) -> None:
        """It holds nothing of the operating system, so one that was not closed is no fault."""


def _keep_unhandled(loop: asyncio.AbstractEventLoop, happened: dict[str, Any]) -> None:
    # A power cut ends whatever it hits; nobody has to handle it.
    if isinstance(loop, VirtualLoop) and not isinstance(happened.get("exception"), SimulatedCrash):
        loop.unhandled.append(happened)


def _adopting_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, T],
    *,
    context: contextvars.Context | None = None,
    **options: Any,
) -> asyncio.Task[T]:
    # From 3.13 on a loop hands over the name too.
    task = asyncio.Task(coroutine, loop=loop, context=context, **options)
    process = process_in(context)
    if process is not None:
        process.adopt(task)
    return task


def _process_of(handle: asyncio.Handle) -> SimulatedProcess | None:
    # The base class has no public way to it.
    context: contextvars.Context = handle._context  # type: ignore[attr-defined]
    return process_in(context)


def _is_paused(handle: asyncio.Handle) -> bool:
    process = _process_of(handle)
    return process is not None and process.is_paused


def _is_dead(process: SimulatedProcess | None) -> bool:
    return process is not None and not process.is_alive


def _place(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    where = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
    return f"{task.get_name()} ({getattr(task.get_coro(), '__qualname__', '?')}{where})"
