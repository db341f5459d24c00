"""Lets the changes of a cluster happen one after the other, each of them to its end.

A change writes the store, replaces the image and tells the brokers, with waits in between; two of
them at once would each build on an image without the other. And a change that has begun must not
stop half-way because whoever asked for it has gone: so each runs as a task of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ChangeTurns:
    """A queue of changes, served in the order in which they came."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        #: In the order in which they came.
        self._running: dict[asyncio.Task[Any], None] = {}

    async def run(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for the turn of `change`, and for its end; a cancelled caller does not stop it."""
        return await self.see_through(self._take_turn(change))

    async def see_through(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the end of something that takes turns itself, as `run` does for one turn."""
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = None
        task.add_done_callback(self._running.pop)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait until nothing is under way."""
        while self._running:
            await asyncio.wait(list(self._running))

    async def _take_turn(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            return await change()
