"""What the benchmark found: rows of figures against goals, curves of growth, and what failed.

A row holds the figures of both sides, one of each per round; its ratio, ours to the peer's, is
taken within each round. `Results` is filled as the run goes on, so that whatever has been measured
is there when it is interrupted.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from bench.bench_run import Outcome
from bench.rounds import Comparison, Spread

#: A server that uses less of a core than this waits for its clients.
CLIENT_BOUND_CORES = 0.5


class Verdict(StrEnum):
    REACHED = "reached"
    FLOOR_REACHED = "floor reached"
    MISSED = "missed"
    CLIENT_BOUND = "client-bound"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """Bounds that must hold together: on the ratio, from one side, and on our own figure."""

    ratio_min: float | None = None
    ratio_max: float | None = None
    figure_max: float | None = None
    #: A better ratio than `ratio_min` that is hoped for.
    ratio_aim: float | None = None

    def verdict(self, ratio: float, figure: float, *, is_client_bound: bool = False) -> Verdict:
        missed = (
            (self.ratio_min is not None and ratio < self.ratio_min)
            or (self.ratio_max is not None and ratio > self.ratio_max)
            or (self.figure_max is not None and figure > self.figure_max)
        )
        if missed:
            return Verdict.CLIENT_BOUND if is_client_bound else Verdict.MISSED
        if self.ratio_aim is not None and ratio < self.ratio_aim:
            return Verdict.CLIENT_BOUND if is_client_bound else Verdict.FLOOR_REACHED
        return Verdict.REACHED

    def text(self, unit: str) -> str:
        parts = []
        if self.ratio_min is not None:
            aim = "" if self.ratio_aim is None else f", aim {self.ratio_aim:g}"
            parts.append(f">= {self.ratio_min:g}{aim}")
        if self.ratio_max is not None:
            parts.append(f"<= {self.ratio_max:g}")
        if self.figure_max is not None:
            parts.append(f"< {self.figure_max:g} {unit}")
        return " and ".join(parts)


THROUGHPUT = Goal(ratio_min=1.0, ratio_aim=1.5)
CPU = Goal(ratio_max=0.7)
REQUESTS = Goal(ratio_min=0.7)
LATENCY = Goal(ratio_max=1.0)
START = Goal(ratio_max=0.2, figure_max=0.5)
MEMORY = Goal(figure_max=80.0)
#: Beside a server as it comes, which waits for more members; and beside one that does not wait.
FIRST_RECORD = Goal(ratio_max=0.2, figure_max=150.0)
FIRST_RECORD_AT_ONCE = Goal(ratio_max=1.0, figure_max=150.0)
COORDINATION = Goal(ratio_min=1.0)


@dataclass(frozen=True, slots=True)
class Row:
    section: str
    what: str
    unit: str
    values: Comparison
    goal: Goal | None = None
    #: How busy our server was, and the peer's, in cores; None where that is not the point.
    cores: tuple[float, float] | None = None

    @property
    def ours(self) -> Spread:
        return full_spread(self.values.ours)

    @property
    def peer(self) -> Spread:
        return full_spread(self.values.peers)

    @property
    def ratio(self) -> Spread:
        pairs = zip(self.values.ours, self.values.peers, strict=True)
        return full_spread([ours / peer for ours, peer in pairs])

    @property
    def is_client_bound(self) -> bool:
        return self.cores is not None and self.cores[0] < CLIENT_BOUND_CORES

    @property
    def verdict(self) -> Verdict:
        if self.goal is None:
            return Verdict.NONE
        return self.goal.verdict(
            self.ratio.median, self.ours.median, is_client_bound=self.is_client_bound
        )

    @property
    def goal_text(self) -> str:
        return "" if self.goal is None else self.goal.text(self.unit)

    def as_json(self) -> dict[str, Any]:
        return {
            "section": self.section,
            "what": self.what,
            "unit": self.unit,
            "ours": {"values": self.values.ours, **self.ours._asdict()},
            "peer": {"values": self.values.peers, **self.peer._asdict()},
            "ratio": self.ratio._asdict(),
            "goal": self.goal_text or None,
            "verdict": self.verdict.value or None,
            "cores": list(self.cores) if self.cores is not None else None,
        }


@dataclass(slots=True)
class Curve:
    """How a figure of both sides changes with a count: of partitions, of connections."""

    what: str
    unit: str
    #: What the count counts.
    axis: str
    counts: list[int] = field(default_factory=list)
    ours: list[Spread] = field(default_factory=list)
    peer: list[Spread] = field(default_factory=list)

    def add(self, count: int, ours: Sequence[float], peer: Sequence[float]) -> None:
        self.counts.append(count)
        self.ours.append(full_spread(ours))
        self.peer.append(full_spread(peer))

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "unit": self.unit,
            "axis": self.axis,
            "counts": self.counts,
            "ours": [spread._asdict() for spread in self.ours],
            "peer": [spread._asdict() for spread in self.peer],
        }


@dataclass(slots=True)
class Results(Outcome):
    our_name: str
    peer_name: str
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    @classmethod
    def of_sides(cls, sides: Sequence[str]) -> Self:
        """For two sides by the names that options have; twice the same are A and B."""
        ours, peer = (side.replace("-", " ").title() for side in sides)
        return cls(f"{ours} A", f"{peer} B") if ours == peer else cls(ours, peer)

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.curves


def full_spread(values: Sequence[float]) -> Spread:
    """Median, smallest and largest: with the few rounds that servers allow, nothing is left out."""
    return Spread(statistics.median(values), min(values), max(values))
