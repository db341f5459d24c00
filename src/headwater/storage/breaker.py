"""A breaker: whether more records of a retry topic's partition are given up than chance explains.

It opens when `retry.breaker.letters` have been given up within `retry.breaker.window.ms`, and stays
open for as long again after the last time that so many were. Who delivers counts
(`headwater.delay`); appends and metrics ask.
"""

from __future__ import annotations

from headwater.storage.log_config import BreakerRules


class Breaker:
    """Of one log, since its broker leads it. Told the time, which may be set back."""

    __slots__ = ("_count", "_since_ms", "_until_ms")

    def __init__(self) -> None:
        self._count = 0
        #: Since when is counted.
        self._since_ms = 0
        self._until_ms = 0

    def add(self, letter_count: int, rules: BreakerRules, now_ms: int) -> None:
        """So many more were given up."""
        if not self._since_ms <= now_ms < self._since_ms + rules.window_ms:
            self._since_ms, self._count = now_ms, 0
        self._count += letter_count
        if rules.letters and self._count >= rules.letters:
            self._until_ms = now_ms + rules.window_ms
            self._count = 0

    def is_open(self, rules: BreakerRules, now_ms: int) -> bool:
        return 0 < self._until_ms - now_ms <= rules.window_ms and rules.letters > 0
