"""An event loop on a thread of its own: how the clients for threads do what asyncio does.

`Producer`, `Consumer` and `Admin` are called from any thread. Their input and output happens on one
background thread each, so that heartbeats and batches go out while user code computes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from headwater.base.checks import check

T = TypeVar("T")


class BackgroundLoop:
    """Starts at once; `close` ends it."""

    def __init__(self, thread_name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the background thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    @property
    def is_closed(self) -> bool:
        return self.loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run it there and return its result; it is cancelled if the caller stops waiting."""
        check(not self.is_current, "the background thread would wait for itself")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        """Call it there and return what it returns."""

        async def call_it() -> T:
            return function()

        return function() if self.is_current else self.run(call_it())

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have it called there soon; after the end, not at all."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel what runs there, and end the thread."""
        if self.is_closed:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
