"""An event loop on a thread of its own: how the clients for threads do what asyncio does.

`Producer`, `Consumer` and `Admin` are called from any thread. Their input and output happens on one
background thread each, so that heartbeats and batches go out while user code computes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from headwater.base.checks import check
from headwater.client.errors import ClientClosedError

T = TypeVar("T")


class BackgroundLoop:
    """Starts at once; `close` ends it."""

    def __init__(self, thread_name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.loop.close()
            # From Python 3.12 on there are no new threads once the program ends.
            raise ClientClosedError(f"No client can be started now: {error}.") from error

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the background thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    @property
    def is_closed(self) -> bool:
        return self.loop.is_closed()

    @property
    def is_forked(self) -> bool:
        """Whether this is a child's copy, whose thread stayed with the parent."""
        return os.getpid() != self._process_id

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin to run it there; raises `ClientClosedError` if nothing runs there any more."""
        if self.is_forked:
            work.close()
            raise forked_error()
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            work.close()
            raise ClientClosedError() from None

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run it there and return its result; it is cancelled if the caller stops waiting."""
        check(not self.is_current, "the background thread would wait for itself")
        future = self.start(work)
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
        if self.is_closed or self.is_forked:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def close_soon(self) -> None:
        """The same without waiting for it, also on the background thread itself."""
        self.call_soon(self.loop.stop)

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


def forked_error() -> ClientClosedError:
    """For a client that is used on the other side of a fork."""
    return ClientClosedError(
        "A client can only be used by the process that made it: make another one after the fork."
    )
