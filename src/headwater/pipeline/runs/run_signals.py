"""Ctrl-C and SIGTERM for a run: the first asks it to stop in an orderly way, the second ends it.

While a run starts there is nothing to finish, and the first signal ends it. Spark puts a handler of
its own in place when its session starts, so `install` is called again after that.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from headwater.pipeline.runs.run_record import RunRecord
from headwater.pipeline.runs.running_pipeline import Wish

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StoppedAtOnce(BaseException):
    """A signal ended the run in the middle of something; nothing should catch it on its way."""


class RunSignals:
    """The environment of a run in a process of its own: real time, signals, and a view."""

    def __init__(
        self, show: Callable[[RunRecord], None], say: Callable[[str], None] | None = None
    ) -> None:
        self._show = show
        self._say = say
        self._wish = Wish.GO_ON
        self._is_running = False
        self._woken = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Take the signals, from the main thread; elsewhere they are left as they are."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            before = signal.signal(number, self._receive)
            self._before.setdefault(number, before)

    def restore(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()

    def running(self) -> None:
        """From now on there are batches to finish."""
        self._is_running = True

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, duration_s: float) -> None:
        if self._woken.wait(duration_s):
            self._woken.clear()

    def wish(self) -> Wish:
        return self._wish

    def show(self, record: RunRecord) -> None:
        self._show(record)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._is_running or self._wish is not Wish.GO_ON:
            self._wish = Wish.STOP_NOW
            raise StoppedAtOnce
        self._wish = Wish.STOP
        self._woken.set()
        if self._say is not None:
            self._say("Stopping after the current batches; a second Ctrl-C stops it at once.")
