"""How large a share of its time something was idle, over the last while.

Somebody counts the seconds that it was busy since its beginning. `IdleShare` remembers some of
these counts, and the share is what the count grew by against the time that has passed.

`loop_busy_s` is such a count for the thread that calls it, which is to be an event loop's. uvloop
does not tell how long it waits for events, but the kernel knows how long the thread has run, and
how long it would have run if it had got a core. The rest it has slept; nearly all of that is
waiting for events. What a write waits for a slow disk counts as idle too, although it is not.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
#: A broker that has just started has been nothing but busy.
_SPAN_S_MIN: Final = 1.0
_SCHEDULER_FILE: Final = "/proc/thread-self/schedstat"


class IdleShare:
    """The idle share of `size` workers over a sliding window."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, float]] = deque()

    def sample(self, now_s: float, busy_s: float) -> None:
        """Remember that they have been busy for `busy_s` in all by now."""
        samples = self._samples
        # The newest one that is older than the window stays: it is where the window begins.
        while len(samples) > 1 and samples[1][0] <= now_s - self._window_s:
            samples.popleft()
        samples.append((now_s, busy_s))

    def share(self, now_s: float, busy_s: float, size: int = 1) -> float:
        """From 0, always busy, to 1, which also holds before there is enough to compare."""
        if not self._samples:
            return 1.0
        began_s, busy_before_s = self._samples[0]
        if now_s - began_s < _SPAN_S_MIN:
            return 1.0
        busy_share = (busy_s - busy_before_s) / ((now_s - began_s) * size)
        return min(1.0, max(0.0, 1.0 - busy_share))


def loop_busy_s() -> float:
    """Seconds that the calling thread has run, or was ready to run but had no core."""
    try:
        with open(_SCHEDULER_FILE) as file:
            running_ns, waiting_ns = file.read().split()[:2]
    except (OSError, ValueError):
        # Not Linux, or a kernel that does not count this.
        return time.thread_time()
    return (int(running_ns) + int(waiting_ns)) / 1e9
