"""The tasks of requests that are not answered at once.

A task must be held by somebody, or it may vanish half-way; and a broker that stops waits for all of
them, so that nobody who was promised an answer is left without.

Making an answer may take a millisecond, and hundreds of connections may ask in the same moment. So
only some tasks begin in a round of the event loop; the others stand in line. A connection has one
request there at most, and is not read from meanwhile: so all of them get their turns in a circle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: How many begin in a round: some milliseconds.
BEGUN_PER_ROUND: Final = 16


class RequestTasks:
    """Its owner is the broker; it lives on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun_count = 0
        self._is_round_coming = False
        self._waiting: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in a task that is waited for at the end."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def may_begin(self) -> bool:
        """Whether one more request may begin in this round; if so it is counted."""
        if self._waiting or self._begun_count >= BEGUN_PER_ROUND:
            return False
        self._begun_count += 1
        self._call_round()
        return True

    def wait(self, begin: Callable[[], None]) -> None:
        """Stand in line: `begin` is called in a later round."""
        self._waiting.append(begin)
        self._call_round()

    def _call_round(self) -> None:
        if not self._is_round_coming:
            self._is_round_coming = True
            self._loop.call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._is_round_coming = False
        self._begun_count = min(len(self._waiting), BEGUN_PER_ROUND)
        for _ in range(self._begun_count):
            self._waiting.popleft()()
        if self._begun_count:
            self._call_round()

    async def finish(self) -> None:
        """Wait until no task is left."""
        while self._tasks or self._waiting:
            if self._tasks:
                await asyncio.wait(self._tasks)
            else:
                await asyncio.sleep(0)
