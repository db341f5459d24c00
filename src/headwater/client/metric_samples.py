"""What a metric is made of: values over the last half minute to minute, in two windows.

Sans-io. As in Kafka's clients, rates and averages are over the current window and the one before
it. One thread records; others may look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WINDOW_S: Final = 30.0


class Samples:
    """Values of one kind: how many, their sum and their largest, lately and of all time."""

    __slots__ = (
        "_count",
        "_former_count",
        "_former_max",
        "_former_sum",
        "_max",
        "_start_s",
        "_sum",
        "_window_s",
        "total",
        "total_count",
    )

    def __init__(self, now_s: float) -> None:
        self.total = 0.0
        self.total_count = 0
        self._start_s = now_s
        self._window_s = now_s
        self._count = self._former_count = 0
        self._sum = self._former_sum = 0.0
        self._max = self._former_max = float("nan")

    def record(self, value: float, now_s: float) -> None:
        self.record_all((value,), now_s)

    def record_all(self, values: Sequence[float], now_s: float) -> None:
        """Several at once, of which there is at least one."""
        if now_s - self._window_s >= WINDOW_S:
            self._move(now_s)
        count, added, largest = len(values), sum(values), max(values)
        self.total += added
        self.total_count += count
        self._count += count
        self._sum += added
        if not self._max >= largest:
            self._max = largest

    def rate(self, now_s: float) -> float:
        """The sum per second."""
        self._expire(now_s)
        return (self._sum + self._former_sum) / self._elapsed_s(now_s)

    def count_rate(self, now_s: float) -> float:
        """How many per second."""
        self._expire(now_s)
        return (self._count + self._former_count) / self._elapsed_s(now_s)

    def average(self, now_s: float) -> float:
        """Not a number if there was none."""
        self._expire(now_s)
        count = self._count + self._former_count
        return (self._sum + self._former_sum) / count if count else float("nan")

    def largest(self, now_s: float) -> float:
        """Not a number if there was none."""
        self._expire(now_s)
        if not self._former_count:
            return self._max
        return self._former_max if not self._max > self._former_max else self._max

    def _elapsed_s(self, now_s: float) -> float:
        # A rate over the first moments would be a wild guess.
        former_s = WINDOW_S if self._window_s - self._start_s >= WINDOW_S else 0.0
        return max(now_s - self._window_s + former_s, 1.0)

    def _expire(self, now_s: float) -> None:
        if now_s - self._window_s >= WINDOW_S:
            self._move(now_s)

    def _move(self, now_s: float) -> None:
        is_adjacent = now_s - self._window_s < 2 * WINDOW_S
        self._former_count = self._count if is_adjacent else 0
        self._former_sum = self._sum if is_adjacent else 0.0
        self._former_max = self._max if is_adjacent else float("nan")
        self._window_s = self._window_s + WINDOW_S if is_adjacent else now_s
        self._count, self._sum, self._max = 0, 0.0, float("nan")
