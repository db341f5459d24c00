"""SIGTERM and SIGINT for workers: the first stops all that run, a second does what it did before.

What a signal does is one for the whole process, so this is too. A program may run several workers
on its event loop, and may look after signals itself: then it stops them itself, and keeps them.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """For the main thread, which alone may say what signals do; elsewhere nothing is done."""

    def __init__(self) -> None:
        #: How those that run are stopped.
        self._stops: dict[object, Callable[[], object]] = {}
        #: What the signals did before.
        self._before: dict[signal.Signals, Any] = {}

    @contextlib.contextmanager
    def stopping(self, stop: Callable[[], object], *, is_polite: bool = False) -> Iterator[None]:
        """Meanwhile the signals call `stop`; if polite, only those that nobody else looks after.

        It is called as signal handlers are, in the midst of anything.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        place = object()
        self._stops[place] = stop
        for number in _SIGNALS:
            if number not in self._before and not (is_polite and _is_taken(number)):
                self._before[number] = signal.signal(number, self._stop)
        try:
            yield
        finally:
            del self._stops[place]
            if not self._stops:
                self._restore()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._restore()
        for stop in list(self._stops.values()):
            stop()

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


def _is_taken(number: signal.Signals) -> bool:
    """Whether the program looks after a signal; that of `asyncio.run` only interrupts."""
    handler = signal.getsignal(number)
    if isinstance(handler, partial):
        return not isinstance(getattr(handler.func, "__self__", None), asyncio.Runner)
    return handler not in (signal.SIG_DFL, signal.default_int_handler)


STOP_SIGNALS: Final = StopSignals()
