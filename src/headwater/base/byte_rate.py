"""How many bytes a second something carries, over the last few windows of time. Sans-io.

Bytes are counted in windows of a second, of which the last eleven are kept, as Kafka's quotas do it
(`replication.quota.window.num`). The rate is what all of them hold, divided by the time since the
first of them began, and by one window at least: so a burst counts as if it had taken that long, and
who has carried nothing for a while may carry some more at once.

Whoever carries more than a limit has to wait. How long is known exactly: until enough time has
passed, or enough of the windows are forgotten.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from headwater.base.checks import check

WINDOW_COUNT: Final = 11
WINDOW_MS: Final = 1_000
#: No wait is worth less than this; it is more than what rounding may leave of one that is over.
_WAIT_MIN_MS: Final = 0.01


class ByteRate:
    """Its owner tells it the time, which is monotonic."""

    __slots__ = ("_total_bytes", "_window_count", "_window_ms", "_windows")

    def __init__(self, window_count: int = WINDOW_COUNT, window_ms: int = WINDOW_MS) -> None:
        check(window_count > 0 and window_ms > 0, "a rate needs a time to be measured in")
        self._window_count = window_count
        self._window_ms = window_ms
        #: When each began, and what it holds; at most `window_count` of them.
        self._windows: deque[tuple[float, int]] = deque()
        self._total_bytes = 0

    def record(self, size_bytes: int, now_ms: float) -> None:
        """So much was carried."""
        self._forget_old(now_ms)
        self._total_bytes += size_bytes
        windows = self._windows
        if windows and now_ms - windows[-1][0] < self._window_ms:
            began_ms, held_bytes = windows[-1]
            windows[-1] = (began_ms, held_bytes + size_bytes)
            return
        windows.append((now_ms, size_bytes))
        if len(windows) > self._window_count:
            self._total_bytes -= windows.popleft()[1]

    def per_second(self, now_ms: float) -> float:
        """The rate right now."""
        self._forget_old(now_ms)
        if not self._windows:
            return 0.0
        return self._total_bytes * 1000 / max(self._window_ms, now_ms - self._windows[0][0])

    def wait_ms(self, limit: int, now_ms: float) -> float:
        """How long until the rate is no more than `limit` bytes a second; 0.0 if it is not."""
        self._forget_old(now_ms)
        total_bytes = self._total_bytes
        earliest_ms = now_ms
        for began_ms, held_bytes in self._windows:
            if total_bytes * 1000 <= limit * self._window_ms:
                break
            forgotten_ms = began_ms + self._window_count * self._window_ms
            if limit > 0:
                due_ms = began_ms + total_bytes * 1000 / limit
                if due_ms <= forgotten_ms:
                    earliest_ms = max(earliest_ms, due_ms)
                    break
            # Time alone is not enough before this window is forgotten, and its bytes with it.
            earliest_ms = forgotten_ms
            total_bytes -= held_bytes
        wait_ms = earliest_ms - now_ms
        return wait_ms if wait_ms >= _WAIT_MIN_MS else 0.0

    def _forget_old(self, now_ms: float) -> None:
        windows, kept_ms = self._windows, self._window_count * self._window_ms
        while windows and now_ms - windows[0][0] >= kept_ms:
            self._total_bytes -= windows.popleft()[1]
