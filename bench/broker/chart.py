"""The benchmark's results as one picture: ratios as bars, growth as lines beside the peer's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.broker.results import Curve, Results, Row, Verdict
from bench.broker.throughput import SECTION as THROUGHPUT_SECTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {
    Verdict.REACHED: "#2a7f62",
    Verdict.FLOOR_REACHED: "#86b89f",
    Verdict.CLIENT_BOUND: "#9aa5b1",
    Verdict.MISSED: "#c8553d",
    Verdict.NONE: "#9aa5b1",
}
_OUR_COLOR, _PEER_COLOR = "#2a7f62", "#5b6c9e"
_BAR_INCHES = 0.26
_CURVE_INCHES = 2.7
_CURVES_PER_LINE = 3


def draw(results: Results, path: Path) -> None:
    """Write the picture; nothing if there is nothing to show."""
    if results.is_empty:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    curves = [curve for curve in results.curves if curve.counts]
    curve_lines = -(-len(curves) // _CURVES_PER_LINE)
    heights = []
    if results.rows:
        heights.append(1.0 + _BAR_INCHES * len(results.rows))
    if curves:
        heights.append(_CURVE_INCHES * curve_lines)
    figure = Figure(figsize=(12, sum(heights)), layout="constrained")
    parts = iter(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if results.rows:
        _draw_ratios(next(parts).subplots(), results)
    if curves:
        part = next(parts)
        for number, curve in enumerate(curves, 1):
            axes = part.add_subplot(curve_lines, _CURVES_PER_LINE, number)
            _draw_curve(axes, curve, results)
    figure.savefig(path, dpi=110)


def _draw_ratios(axes: Axes, results: Results) -> None:
    """Bars begin where both are equal: what is better on the right is worse on the left."""
    rows = results.rows[::-1]
    places = range(len(rows))
    ratios = [row.ratio for row in rows]
    lengths = [ratio.median - 1 for ratio in ratios]
    ranges = (
        [ratio.median - ratio.low for ratio in ratios],
        [ratio.high - ratio.median for ratio in ratios],
    )
    colors = [_COLORS[row.verdict] for row in rows]
    axes.set_xscale("log")
    axes.barh(places, lengths, left=1, xerr=ranges, color=colors, ecolor="#444444", height=0.7)
    axes.axvline(1.0, color="#222222", linewidth=1)
    axes.set_yticks(places, [_label(row) for row in rows], fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(f"{results.our_name} : {results.peer_name}, median ratio and its range")
    for verdict in dict.fromkeys(row.verdict for row in results.rows if row.verdict):
        axes.barh([0], [0], left=1, color=_COLORS[verdict], label=verdict.value)
    axes.legend(loc="lower right", fontsize=8)


def _label(row: Row) -> str:
    better = "higher" if row.goal is not None and row.goal.ratio_min is not None else "lower"
    prefix = "" if row.section == THROUGHPUT_SECTION else f"{row.section}: "
    return f"{prefix}{row.what} ({better} is better)"


def _draw_curve(axes: Axes, curve: Curve, results: Results) -> None:
    for name, color, spreads in (
        (results.our_name, _OUR_COLOR, curve.ours),
        (results.peer_name, _PEER_COLOR, curve.peer),
    ):
        medians = [spread.median for spread in spreads]
        axes.plot(curve.counts, medians, marker="o", markersize=4, color=color, label=name)
        lows, highs = [spread.low for spread in spreads], [spread.high for spread in spreads]
        axes.fill_between(curve.counts, lows, highs, color=color, alpha=0.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.set_title(curve.what, fontsize=9)
    axes.set_xlabel(curve.axis, fontsize=8)
    axes.set_ylabel(curve.unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7)
