"""What a benchmark reports: rows, and how they are printed as Markdown and as JSON.

A row says what was measured, our figure, a peer's figure from the same run if there is one, the
ratio of the two, and the goal with whether it was met. Rows without a goal are there to inform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.machine import Machine
from bench.rounds import Comparison, Spread


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on the ratio of a row if it has a peer, else on its figure."""

    bound: float
    is_upper: bool = False

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.is_upper else value >= self.bound


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    unit: str
    figure: Spread
    peer_name: str = ""
    peer: Spread | None = None
    ratio: Spread | None = None
    goal: Goal | None = None
    note: str = ""

    @classmethod
    def compared(
        cls,
        what: str,
        unit: str,
        comparison: Comparison,
        peer_name: str,
        goal: Goal | None = None,
        note: str = "",
    ) -> Row:
        return cls(
            what,
            unit,
            Spread.of(comparison.ours),
            peer_name,
            Spread.of(comparison.peers),
            comparison.ratio,
            goal,
            note,
        )

    @classmethod
    def single(
        cls, what: str, unit: str, value: float, goal: Goal | None = None, note: str = ""
    ) -> Row:
        return cls(what, unit, Spread.of([value]), goal=goal, note=note)

    @property
    def is_met(self) -> bool | None:
        """None without a goal."""
        if self.goal is None:
            return None
        return self.goal.is_met((self.ratio or self.figure).median)

    def cells(self) -> list[str]:
        figure = f"{format_number(self.figure.median)} {self.unit}"
        if self.figure.low != self.figure.high and self.ratio is None:
            figure += f" ({_range(self.figure)})"
        if self.note:
            figure += f", {self.note}"
        peer = ""
        if self.peer is not None:
            peer = f"{self.peer_name}: {format_number(self.peer.median)} {self.unit}"
        ratio = ""
        if self.ratio is not None:
            ratio = f"{format_number(self.ratio.median)} ({_range(self.ratio)})"
        goal = ""
        if self.goal is not None:
            unit = "" if self.ratio is not None else f" {self.unit}"
            sign = "<=" if self.goal.is_upper else ">="
            goal = f"{sign} {format_number(self.goal.bound)}{unit}"
        met = {None: "", True: "yes", False: "no"}[self.is_met]
        return [self.what, figure, peer, ratio, goal, met]

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "unit": self.unit,
            "figure": self.figure._asdict(),
            "peer_name": self.peer_name or None,
            "peer": self.peer._asdict() if self.peer is not None else None,
            "ratio": self.ratio._asdict() if self.ratio is not None else None,
            "goal": {"bound": self.goal.bound, "is_upper": self.goal.is_upper}
            if self.goal is not None
            else None,
            "is_met": self.is_met,
            "note": self.note or None,
        }


def format_number(value: float) -> str:
    """Three digits that count, and thousands told apart."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def with_range(spread: Spread) -> str:
    """The median, and behind it from where to where the values go if they differ."""
    text = format_number(spread.median)
    return text if spread.low == spread.high else f"{text} ({_range(spread)})"


def _range(spread: Spread) -> str:
    return f"{format_number(spread.low)}..{format_number(spread.high)}"


_HEADINGS = ["What", "Headwater", "Peer", "Ratio (p10..p90)", "Goal", "Met"]


def as_markdown(machine: Machine, rows: Sequence[Row]) -> str:
    """The machine in a sentence and the rows as a table whose source is readable too."""
    text = markdown_table(_HEADINGS, [row.cells() for row in rows])
    return "\n".join([str(machine), "", *text, ""])


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose source is readable too."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    rule = ["-" * width for width in widths]
    return [
        "| " + " | ".join(map(str.ljust, line, widths)) + " |"  # One row of the table.
        for line in (headings, rule, *rows)
    ]


def as_json(machine: Machine, rows: Sequence[Row]) -> dict[str, Any]:
    return {"machine": machine.as_json(), "rows": [row.as_json() for row in rows]}
