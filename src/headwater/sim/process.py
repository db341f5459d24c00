"""A process in the simulation: whatever runs on its behalf, so that all of it can end at once.

Real processes are killed, and machines lose power, between any two instructions; nothing of theirs
runs after that, no `finally` and no timer. In one event loop that holds many of them, the border is
a context variable: what a process starts inherits it, tasks, callbacks and timers alike, and the
loop drops what belongs to a process that is dead. See `virtual_loop`.

A process can also be paused, as SIGSTOP does: nothing of it runs, while its host's network goes on
and time passes. What came for it meanwhile is found when it is resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from typing import Any, Final, TypeVar

from headwater.base.checks import check

T = TypeVar("T")

#: A `finally` that waits for something keeps its coroutine from being closed; others may follow it.
_CLOSES_MAX: Final = 20

_current: Final[contextvars.ContextVar[SimulatedProcess | None]] = contextvars.ContextVar(
    "simulated_process", default=None
)


class SimulatedProcess:
    """One process on one host of the simulated network."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self._context = contextvars.copy_context()
        self._context.run(_current.set, self)
        self._tasks: list[asyncio.Task[Any]] = []
        self._on_kill: list[Callable[[], None]] = []
        #: What came from outside while it was paused.
        self._deliveries: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<process {self.name} on {self.host}{'' if self.is_alive else ', dead'}>"

    @property
    def context(self) -> contextvars.Context:
        """A context of its own for one more thing that this process does."""
        return self._context.copy()

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function as this process, now."""
        check(self.is_alive, "%s is dead", self.name)
        return self.context.run(function, *arguments)

    def deliver(self, callback: Callable[[], None]) -> None:
        """Have something from outside call into this process: now, when it runs again, or never."""
        if self.is_paused:
            self._deliveries.append(callback)
        elif self.is_alive:
            callback()

    def resume_deliveries(self) -> None:
        """It runs again: what came meanwhile comes now, in its order."""
        deliveries, self._deliveries = self._deliveries, []
        for callback in deliveries:
            self.deliver(callback)

    def add_kill_callback(self, callback: Callable[[], None]) -> None:
        """Let something outside, such as its network connections, know of its end."""
        self._on_kill.append(callback)

    def kill(self) -> None:
        """End it here and now; what is on the stack goes on to its next await, and no further."""
        if not self.is_alive:
            return
        self.is_alive = self.is_paused = False
        self._deliveries.clear()
        callbacks, self._on_kill = self._on_kill, []
        for callback in callbacks:
            callback()

    def adopt(self, task: asyncio.Task[Any]) -> None:
        # Kept also when they are done: who is dead must not be collected, see `bury`.
        if len(self._tasks) > 1000:
            self._tasks = [each for each in self._tasks if not each.done()]
        self._tasks.append(task)

    def bury(self) -> None:
        """Let go of what a dead process was doing, without a word about it.

        A coroutine that is collected runs its `finally` clauses. Those of a dead process have
        nothing to say any more; here they run where nothing of it can be seen.
        """
        check(not self.is_alive, "%s is alive", self.name)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            if task.done():
                if not task.cancelled():
                    task.exception()
                continue
            # Tasks have no public way to say that nobody will miss them.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            close = getattr(task.get_coro(), "close", None)
            if close is None:
                continue
            for _ in range(_CLOSES_MAX):
                with contextlib.suppress(BaseException):
                    self.context.run(close)
                    break  # Unless it has waited again, in a `finally` clause.


def current_process() -> SimulatedProcess | None:
    """The process on whose behalf the caller runs; None for the simulation itself."""
    return _current.get()


def process_in(context: contextvars.Context | None) -> SimulatedProcess | None:
    """The process that a context belongs to."""
    return current_process() if context is None else context.get(_current)
