"""The benchmark's results as one picture: ratios as bars, growth as lines beside the peer's."""

from __future__ import annotations

from pathlib import Path

from bench.broker.results import Curve, Results, Row, Verdict
from bench.broker.throughput import CPU_SECTION

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
    bar_inches = 0.9 + _BAR_INCHES * len(results.rows) if results.rows else 0.0
    heights = [bar_inches] * bool(results.rows) + [_CURVE_INCHES] * curve_lines
    figure = Figure(figsize=(12, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), _CURVES_PER_LINE, height_ratios=heights)
    first_line = 0
    if results.rows:
        _draw_ratios(figure.add_subplot(grid[0, :]), results)
        first_line = 1
    for number, curve in enumerate(curves):
        line, column = divmod(number, _CURVES_PER_LINE)
        _draw_curve(figure.add_subplot(grid[first_line + line, column]), curve, results)
    figure.savefig(path, dpi=110)


def _draw_ratios(axes, results: Results) -> None:  # type: ignore[no-untyped-def]
    rows = results.rows[::-1]
    places = range(len(rows))
    medians = [row.ratio.median for row in rows]
    below = [row.ratio.median - row.ratio.low for row in rows]
    above = [row.ratio.high - row.ratio.median for row in rows]
    colors = [_COLORS[row.verdict] for row in rows]
    axes.barh(places, medians, xerr=(below, above), color=colors, ecolor="#444444", height=0.7)
    axes.axvline(1.0, color="#222222", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(places, [_label(row) for row in rows], fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_title(f"{results.our_name} : {results.peer_name}, ratio of medians (line: equal)")
    for verdict in dict.fromkeys(row.verdict for row in results.rows if row.verdict):
        axes.barh([0], [0], color=_COLORS[verdict], label=verdict.value)
    axes.legend(loc="upper right", fontsize=8)


def _label(row: Row) -> str:
    better = "lower" if row.goal is not None and row.goal.ratio_min is None else "higher"
    prefix = "CPU per GB: " if row.section == CPU_SECTION else ""
    return f"{prefix}{row.what} ({better} is better)"


def _draw_curve(axes, curve: Curve, results: Results) -> None:  # type: ignore[no-untyped-def]
    for name, color, spreads in (
        (results.our_name, _OUR_COLOR, curve.ours),
        (results.peer_name, _PEER_COLOR, curve.peer),
    ):
        medians = [spread.median for spread in spreads]
        axes.plot(curve.counts, medians, marker="o", markersize=4, color=color, label=name)
        lows, highs = [spread.low for spread in spreads], [spread.high for spread in spreads]
        axes.fill_between(curve.counts, lows, highs, color=color, alpha=0.2)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_title(curve.what, fontsize=9)
    axes.set_xlabel(curve.axis, fontsize=8)
    axes.set_ylabel(curve.unit, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7)
