"""What the demo shows in the terminal: numbered steps, pipelines at work, tables and verdicts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from headwater.pipeline.demo.calculation import PaidOrder
from headwater.pipeline.demo.comparison import Rejected, RevenueRow, Verdict

_NUMBER: Final = "right"
#: Where exactly a text breaks off is another place each time.
_PLACE: Final = re.compile(r" at character \d+$")


class PipelineState(NamedTuple):
    """A pipeline under way, all its queries taken together."""

    name: str
    batch_count: int
    record_count: int
    records_per_s: float
    lag: int
    watermark: str


class Screen:
    """Writes to one console; on a terminal in colour, elsewhere as plain text."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._step = 0

    def step(self, title: str, explanation: str) -> None:
        """A heading, and under it what happens and why."""
        self._step += 1
        self.console.print()
        self.console.print(Text(f"{self._step}. {title}", style="bold cyan"))
        self.say(explanation)

    def say(self, text: str) -> None:
        self.console.print(Text(text), soft_wrap=False)

    def show(self, what: RenderableType) -> None:
        self.console.print(what)


def pipelines_table(states: Sequence[PipelineState], sent_count: int) -> Table:
    table = _table(f"{sent_count:,} records sent", "pipeline")
    for name in ("micro-batches", "records read", "records/s", "lag"):
        table.add_column(name, justify=_NUMBER)
    table.add_column("watermark")
    for state in states:
        table.add_row(
            state.name,
            f"{state.batch_count:,}",
            f"{state.record_count:,}",
            f"{state.records_per_s:,.0f}",
            f"{state.lag:,}",
            state.watermark or "none",
        )
    return table


def revenue_table(revenue: Iterable[RevenueRow]) -> Table:
    """By category over all windows, with the best minute of each."""
    rows: dict[str, list[RevenueRow]] = defaultdict(list)
    for row in revenue:
        rows[row.category].append(row)
    table = _table("lake/revenue, by category", "category")
    for name in ("windows", "orders", "revenue", "best window"):
        table.add_column(name, justify=_NUMBER)
    for category, windows in sorted(rows.items()):
        table.add_row(
            category,
            f"{len(windows):,}",
            f"{sum(row.revenue.order_count for row in windows):,}",
            _euros(sum(row.revenue.cents for row in windows)),
            _euros(max(row.revenue.cents for row in windows)),
        )
    return table


def paid_orders_table(rows: Sequence[PaidOrder]) -> Table:
    by_category: dict[str, list[PaidOrder]] = defaultdict(list)
    for row in rows:
        by_category[row.category].append(row)
    table = _table("lake/paid_orders, by category", "category")
    for name in ("paid orders", "amount", "seconds to pay (median)"):
        table.add_column(name, justify=_NUMBER)
    for category, paid in sorted(by_category.items()):
        times_ms = sorted(row.took_ms for row in paid)
        table.add_row(
            category,
            f"{len(paid):,}",
            _euros(sum(row.amount_cents for row in paid)),
            f"{times_ms[len(times_ms) // 2] / 1000:.0f}",
        )
    return table


def rejected_table(rejected: Iterable[Rejected]) -> Table:
    counts = Counter((record.topic, _PLACE.sub("", record.reason)) for record in rejected)
    table = _table("dead letters, by reason", "topic")
    table.add_column("records", justify=_NUMBER)
    table.add_column("reason")
    for (topic, reason), count in sorted(counts.items()):
        table.add_row(topic, f"{count:,}", reason)
    return table


def lag_table(lag_by_group: Mapping[str, int]) -> Table:
    table = _table("consumer groups", "group")
    table.add_column("lag", justify=_NUMBER)
    for group, lag in lag_by_group.items():
        table.add_row(group, f"{lag:,}")
    return table


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    table = _table("Spark's results and the calculation in plain Python", "question")
    table.add_column("answer")
    table.add_column("found", overflow="fold")
    for verdict in verdicts:
        answer = Text("right", "green") if verdict.is_right else Text("WRONG", "bold red")
        table.add_row(verdict.question, answer, verdict.found)
    return table


def _table(title: str, first_column: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column(first_column)
    return table


def _euros(cents: int) -> str:
    return f"€{cents / 100:,.2f}"
