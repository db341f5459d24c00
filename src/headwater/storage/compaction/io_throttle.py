"""Slowing a job down to a number of bytes per second, so that it leaves the disk to others."""

from __future__ import annotations

import time
from collections.abc import Callable

from headwater.base.checks import check
from headwater.base.clocks import Clock

#: The rate is kept over windows of this length: short enough that nobody notices a burst, long
#: enough that a sleep is worth its system call.
WINDOW_MS = 300.0


def sleep_ms(duration_ms: float) -> None:
    time.sleep(duration_ms / 1000)


class IoThrottle:
    """Told of all that is read or written, it sleeps when that was too much for the time.

    A window ends when its time is over or when its bytes are used up, whichever comes first. What
    was not used in one window is not carried over to the next.
    """

    def __init__(
        self,
        bytes_per_second: float,
        clock: Clock,
        sleep: Callable[[float], None] = sleep_ms,
    ) -> None:
        check(bytes_per_second > 0, "a rate of %s bytes is none", bytes_per_second)
        self._bytes_per_ms = bytes_per_second / 1000
        self._clock = clock
        self._sleep = sleep
        self._window_start_ms = clock.monotonic_ms()
        self._window_bytes = 0

    def spend(self, size_bytes: int) -> None:
        self._window_bytes += size_bytes
        elapsed_ms = self._clock.monotonic_ms() - self._window_start_ms
        due_ms = self._window_bytes / self._bytes_per_ms
        if max(due_ms, elapsed_ms) < WINDOW_MS:
            return
        if due_ms > elapsed_ms:
            self._sleep(due_ms - elapsed_ms)
        self._window_start_ms = self._clock.monotonic_ms()
        self._window_bytes = 0
