"""The long-lived tasks of a broker: started in one place, and heard of when they die.

asyncio keeps quiet about a task that ends with an exception until nobody holds it any more. A part
of the broker would be gone then, and what waits for that part waits for ever, while everything else
looks well. A broker that works by half is worse than one that stops: others take over from the
latter, and whoever looks after it starts it again. So an exception that nobody expected is logged
with its traceback, and becomes the reason for which the broker stops.

What must not end the broker its task catches itself: what other brokers, clients and disks can do.
Being cancelled and coming to an end are no failures. Tasks that somebody waits for are not started
here: whoever waits hears what became of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class BackgroundTaskError(Exception):
    """A task ended with an exception that nobody expected; the message is a sentence."""


class BackgroundTasks:
    """Its owner is the broker, which gives it to all parts that start tasks."""

    def __init__(self) -> None:
        #: Held here, because a loop refers to its tasks weakly; with what may end each of them.
        self._tasks: dict[asyncio.Task[Any], tuple[type[Exception], ...]] = {}
        #: Why, in their order.
        self._failures: list[Exception] = []
        self._has_failed = asyncio.Event()

    def start(
        self,
        name: str,
        work: Coroutine[Any, Any, T],
        *,
        expected: tuple[type[Exception], ...] = (),
    ) -> asyncio.Task[T]:
        """Run `work` in a task. What is `expected` ends the broker too, but is no bug."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.watch(task, expected=expected)
        return task

    def watch(self, task: asyncio.Task[Any], *, expected: tuple[type[Exception], ...] = ()) -> None:
        """Hear of the end of a task that runs already."""
        self._tasks[task] = expected
        task.add_done_callback(self._on_done)

    @property
    def failure(self) -> Exception | None:
        """Why the broker cannot go on, if a task has failed."""
        return self._failures[0] if self._failures else None

    async def wait_failed(self) -> Exception:
        """Return when a task has failed, with the reason in one sentence."""
        await self._has_failed.wait()
        return self._failures[0]

    async def unless_failed(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that may wait for tasks; if one fails first, its reason is raised."""
        loop = asyncio.get_running_loop()
        doing, failing = loop.create_task(work), loop.create_task(self.wait_failed())
        try:
            await asyncio.wait((doing, failing), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            raise failing.result()
        finally:
            doing.cancel()
            failing.cancel()
            await asyncio.wait((doing, failing))

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        expected = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if not isinstance(error, Exception):
            return
        if isinstance(error, expected):
            _logger.error("The broker cannot go on: %s", error)
            self._failures.append(error)
        else:
            name = task.get_name()
            _logger.error("The task %r of the broker has failed", name, exc_info=error)
            sentence = f"The task {name!r} of the broker failed: {error!r}."
            self._failures.append(BackgroundTaskError(sentence))
        self._has_failed.set()
