"""Timing two things fairly on a machine that does other things too.

Speed on a shared machine drifts by tens of percent from one second to the next, so a figure alone
says little and a ratio of two figures taken apart says less. Here the two take turns, the one that
goes first changing each time, and the ratio is taken within each round. Its median is the result;
its range tells how far to trust it. Rounds are short and many, so that what else the machine does
hits both about equally, and the odd round that it spoils falls outside of the range.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """What a series of values comes to: `low` to `high` leaves out a tenth at each end."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), percentile(values, 0.1), percentile(values, 0.9))


class Comparison(NamedTuple):
    """The values of each round; in both series larger is better."""

    ours: list[float]
    peers: list[float]

    @property
    def ratio(self) -> Spread:
        return Spread.of([ours / peer for ours, peer in zip(self.ours, self.peers, strict=True)])

    def scaled(self, factor: float) -> Comparison:
        """The same in another unit."""
        return Comparison([v * factor for v in self.ours], [v * factor for v in self.peers])


def alternate(ours: Callable[[], float], peer: Callable[[], float], round_count: int) -> Comparison:
    """Let both take turns; each returns its rate in a round, having timed only what matters."""
    comparison = Comparison([], [])
    for number in range(round_count):
        if number % 2 == 0:
            comparison.ours.append(ours())
            comparison.peers.append(peer())
        else:
            comparison.peers.append(peer())
            comparison.ours.append(ours())
    return comparison


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    return sorted(values)[round(share * (len(values) - 1))]
