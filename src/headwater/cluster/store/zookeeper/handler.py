"""How kazoo, a client of ZooKeeper that lives in threads, speaks to one event loop.

kazoo has one thread for its connection, and leaves to a handler what becomes of answers and watch
events. Its own handler gives each kind to a thread of its own, so an answer can overtake the watch
event that came before it. This one hands both to the event loop, in the one order in which the
connection read them. So nothing of Headwater runs in kazoo's thread, and the promise of the
metadata store, that a watch comes before any answer that shows the change, holds on the loop.

The handler also makes the connections, so here is decided which ones are made. After `forbid`
there are none: kazoo would otherwise answer the end of a session with a new one of its own accord,
in which an ephemeral node could be created that nobody knows of.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable, Iterable
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

Address = tuple[str, int]

_READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR
_WRITABLE: Final = select.POLLOUT | select.POLLHUP | select.POLLERR


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """A handler for kazoo whose callbacks run on the event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host_count: int, session_timeout_s: float
    ) -> None:
        super().__init__()
        self._loop = loop
        self._host_count = host_count
        # A server that takes no connection must not cost the time in which another could.
        self._connect_timeout_s = session_timeout_s / host_count
        self._is_forbidden = False
        self._last_address: Address | None = None
        self._avoided_address: Address | None = None

    def post(self, callback: Callable[[], None]) -> None:
        """From any thread: have it called on the loop, behind all that was posted before."""
        # Where the loop is closed nobody is left to hear it.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def forbid(self) -> None:
        """From any thread: make no connection from now on."""
        self._is_forbidden = True

    def avoid_last(self) -> None:
        """From any thread: the next attempt shall go to another server than the last one went to.

        A server that fell silent is often one that still takes connections, and trying it again
        first can cost what is left of the session.
        """
        if self._host_count > 1:
            self._avoided_address = self._last_address

    # -- what kazoo calls -------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        # kazoo runs callbacks in the thread at hand where the handler does not run; never here.
        return True

    def start(self) -> None:
        """There are no threads to start."""

    def stop(self) -> None:
        """There are no threads to stop."""

    def async_result(self) -> LoopResult:
        return LoopResult(self)

    def dispatch_callback(self, callback: Any) -> None:
        self.post(lambda: callback.func(*callback.args))

    def create_connection(self, *args: Any, address: Address, **kwargs: Any) -> Any:
        avoided, self._avoided_address = self._avoided_address, None
        if self._is_forbidden:
            raise ConnectionAbortedError("the session is over")
        if avoided == address:
            raise ConnectionAbortedError("another server is tried first")
        self._last_address = address
        kwargs["timeout"] = self._connect_timeout_s
        return super().create_connection(*args, address=address, **kwargs)

    def select(
        self,
        readers: Iterable[Any],
        writers: Iterable[Any],
        others: Iterable[Any],
        timeout_s: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As kazoo's, which makes an epoll for each call; this is a third of a request's cost."""
        poll = select.poll()
        by_descriptor: dict[int, tuple[Any, bool]] = {}
        for waiting, events, is_reader in ((readers, _READABLE, True), (writers, _WRITABLE, False)):
            for each in waiting:
                poll.register(each, events)
                by_descriptor[each.fileno()] = each, is_reader
        found = poll.poll(None if timeout_s is None else max(0, round(timeout_s * 1_000)))
        ready = [by_descriptor[descriptor] for descriptor, _ in found]
        return (
            [each for each, is_reader in ready if is_reader],
            [each for each, is_reader in ready if not is_reader],
            [],
        )


class LoopResult:
    """What kazoo puts the answer to a request into; whoever linked itself is called on the loop.

    The call is posted when the answer is put in, not when somebody links, so answers are in order
    however quickly they come. A link must be made on the loop, in the same step as the request.
    """

    __slots__ = ("_callbacks", "_handler", "_is_ready", "exception", "value")

    def __init__(self, handler: LoopHandler) -> None:
        self.value: Any = None
        self.exception: BaseException | None = None
        self._handler = handler
        self._callbacks: list[Callable[[LoopResult], object]] = []
        self._is_ready = False

    def set(self, value: Any = None) -> None:
        self._finish(value, None)

    def set_exception(self, exception: BaseException) -> None:
        self._finish(None, exception)

    def rawlink(self, callback: Callable[[LoopResult], object]) -> None:
        self._callbacks.append(callback)

    def get(self) -> Any:
        """The answer, or its error raised; only for those that were called."""
        if self.exception is not None:
            raise self.exception
        return self.value

    def ready(self) -> bool:
        return self._is_ready

    def _finish(self, value: Any, exception: BaseException | None) -> None:
        # kazoo may report the same failure twice.
        if not self._is_ready:
            self._is_ready = True
            self.value = value
            self.exception = exception
            self._handler.post(self._call_back)

    def _call_back(self) -> None:
        for callback in self._callbacks:
            callback(self)
