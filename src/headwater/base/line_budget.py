"""How many log lines one kind of event may cost, however often it happens.

Clients decide how often they are refused and how often their groups rebalance; the log must not be
theirs to fill. So the first few lines of a while are written, and the next line of a later while
says how many were left out.
"""

from __future__ import annotations

import math


class LineBudget:
    """So many lines in so many seconds; whoever logs asks with the time."""

    def __init__(self, lines_max: int, interval_s: float) -> None:
        self._lines_max = lines_max
        self._interval_s = interval_s
        self._begun_s = -math.inf
        self._line_count = 0
        self._left_out = 0

    def take(self, now_s: float) -> int | None:
        """How many were left out before this line; None if it is to be left out as well."""
        # A clock that was set back begins a new while, too.
        if not 0 <= now_s - self._begun_s < self._interval_s:
            self._begun_s = now_s
            self._line_count = 0
        if self._line_count >= self._lines_max:
            self._left_out += 1
            return None
        self._line_count += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
