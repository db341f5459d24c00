"""What a level has done, and how late: for the lines that the service prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class LatenessFigures(NamedTuple):
    """In ms, of what was forwarded since the last report; None if nothing was."""

    p50_ms: int | None
    p99_ms: int | None
    max_ms: int | None


@dataclass(slots=True)
class LevelFigures:
    forwarded_count: int = 0
    dead_count: int = 0
    #: How often each lateness was, to two digits, which bounds how many there can be.
    _lateness: Counter[int] = field(default_factory=Counter)

    def forwarded(self, lateness_ms: int) -> None:
        self.forwarded_count += 1
        self._lateness[_two_digits(max(0, lateness_ms))] += 1

    def take_lateness(self) -> LatenessFigures:
        """Since this was asked last."""
        counted, self._lateness = self._lateness, Counter()
        if not counted:
            return LatenessFigures(None, None, None)
        return LatenessFigures(_percentile(counted, 0.5), _percentile(counted, 0.99), max(counted))


def _percentile(counted: Counter[int], share: float) -> int:
    """The smallest value that so much is not above."""
    total = counted.total()
    seen = 0
    for value in sorted(counted):
        seen += counted[value]
        if seen >= share * total:
            return value
    return max(counted)


def _two_digits(value: int) -> int:
    step: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // step) * step
