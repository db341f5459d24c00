"""A breaker: whether more records of a retry topic's partition are given up than chance explains.

It opens when `retry.breaker.letters` have been given up within any `retry.breaker.window.ms`, and
stays open for as long again after the last time that so many were. Who delivers counts
(`headwater.delay`); appends and metrics ask.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from headwater.storage.log_config import BreakerRules

#: What comes within such a part of a window counts as of its first letter: so few numbers are kept,
#: and nothing ever counts for longer than a window.
_PARTS: Final = 64


class Breaker:
    """Of one log, since its broker leads it. Told the time, which may be set back."""

    __slots__ = ("_count", "_parts", "_until_ms")

    def __init__(self) -> None:
        #: What was given up within the last window: since when, and how many.
        self._parts: deque[tuple[int, int]] = deque()
        #: Of all of them.
        self._count = 0
        self._until_ms = 0

    def add(self, letter_count: int, rules: BreakerRules, now_ms: int) -> None:
        """So many more were given up."""
        self._forget(rules, now_ms)
        since_ms, count = self._parts[-1] if self._parts else (now_ms, 0)
        # A clock that is set back a little adds to what came last.
        if count and now_ms < since_ms + max(1, rules.window_ms // _PARTS):
            self._parts[-1] = (since_ms, count + letter_count)
        else:
            self._parts.append((now_ms, letter_count))
        self._count += letter_count
        if rules.letters and self._count >= rules.letters:
            self._until_ms = now_ms + rules.window_ms

    def _forget(self, rules: BreakerRules, now_ms: int) -> None:
        """What is older than a window; and all, if the clock was set back by more than one."""
        if self._parts and self._parts[-1][0] - now_ms > rules.window_ms:
            self._parts.clear()
            self._count = 0
        while self._parts and self._parts[0][0] <= now_ms - rules.window_ms:
            self._count -= self._parts.popleft()[1]

    def is_open(self, rules: BreakerRules, now_ms: int) -> bool:
        return 0 < self._until_ms - now_ms <= rules.window_ms and rules.letters > 0
