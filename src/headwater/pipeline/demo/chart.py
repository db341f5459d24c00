"""The results as a picture: what was earned in each minute, and how long payments took."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.pipeline.demo.calculation import PaidOrder
from headwater.pipeline.demo.comparison import RevenueRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS: Final = ("#2a7f62", "#c8553d", "#86b89f", "#5b6c9e", "#d9a441", "#7a5c86")
_SECONDS_MAX: Final = 300
_STEP_SECONDS: Final = 10


def chart_is_possible() -> bool:
    """Whether matplotlib is there: it is not among what Headwater needs."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_chart(
    revenue: Sequence[RevenueRow], paid_orders: Sequence[PaidOrder], window_ms: int, path: Path
) -> None:
    """Write the picture as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    _draw_revenue(above, revenue, window_ms)
    _draw_payments(below, paid_orders)
    figure.suptitle("A shop's morning through Headwater and Spark", fontsize=13)
    figure.savefig(path, dpi=120)


def _draw_revenue(axes: Axes, revenue: Sequence[RevenueRow], window_ms: int) -> None:
    """Stacked bars: one a window, a part for each category."""
    starts = sorted({row.window_start_ms for row in revenue})
    categories = sorted({row.category for row in revenue})
    cents = {(row.window_start_ms, row.category): row.revenue.cents for row in revenue}
    places = range(len(starts))
    bottoms = [0.0] * len(starts)
    for number, category in enumerate(categories):
        heights = [cents.get((start, category), 0) / 100 for start in starts]
        color = _COLORS[number % len(_COLORS)]
        axes.bar(places, heights, bottom=bottoms, width=0.9, color=color, label=category)
        bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
    step = max(1, len(starts) // 10)
    axes.set_xticks(list(places)[::step], [_clock(start) for start in starts[::step]])
    axes.set_xlabel("time of the order (UTC)")
    axes.set_ylabel(f"euros in {window_ms / 60_000:g} min")
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    axes.set_title("Revenue by minute and category: the pipeline 'aggregate'", fontsize=11)
    axes.legend(ncols=len(categories), fontsize=8, loc="upper left")
    axes.margins(x=0.01, y=0.15)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _draw_payments(axes: Axes, paid_orders: Sequence[PaidOrder]) -> None:
    seconds = [min(row.took_ms / 1000, _SECONDS_MAX) for row in paid_orders]
    edges = list(range(0, _SECONDS_MAX + _STEP_SECONDS, _STEP_SECONDS))
    axes.hist(seconds, edges, color="#5b6c9e", edgecolor="white", linewidth=0.5)
    axes.set_xlabel(f"seconds from the order to its payment (the last bar: {_SECONDS_MAX} or more)")
    axes.set_ylabel("paid orders")
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    axes.set_title("How long payments took: the pipeline 'join'", fontsize=11)
    axes.margins(x=0.01)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _clock(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%H:%M")
