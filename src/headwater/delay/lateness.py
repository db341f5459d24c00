"""How late deliveries are: the append of a copy minus the time at which it was due."""

from __future__ import annotations

from typing import Final

#: Upper bounds in ms, and above the last of them.
BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 30_000, 300_000)


class Lateness:
    """A histogram that only grows, as metrics want it."""

    __slots__ = ("counts", "sum_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0

    def add(self, late_ms: int) -> None:
        self.sum_ms += late_ms
        for number, bound_ms in enumerate(BOUNDS_MS):
            if late_ms <= bound_ms:
                self.counts[number] += 1
                return
        self.counts[-1] += 1
