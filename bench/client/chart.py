"""The client benchmark's results as one picture: the speed of every client, case by case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.client.contenders import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, TITLES, WIRE_ALONE
from bench.client.results import CaseResults, ClientResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {
    "Headwater": "#2a7f62",
    KAFKA_PYTHON: "#c8a13d",
    AIOKAFKA: "#5b6c9e",
    CONFLUENT: "#9aa5b1",
    WIRE_ALONE: "#d9dde2",
}
_BAR_INCHES = 0.24
_FRAME_INCHES = 0.7


def draw(results: ClientResults, path: Path) -> None:
    """Write the picture; nothing if there is nothing to show."""
    cases = [found for found in results.cases if found.runs]
    if not cases:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    pairs = [cases[first : first + 2] for first in range(0, len(cases), 2)]
    heights = [_FRAME_INCHES + _BAR_INCHES * max(len(one.runs) for one in pair) for pair in pairs]
    figure = Figure(figsize=(14, sum(heights)), layout="constrained")
    places = figure.subplots(len(pairs), 2, height_ratios=heights, squeeze=False)
    for number in range(2 * len(pairs)):
        axes = places[number // 2][number % 2]
        if number < len(cases):
            _draw_case(axes, cases[number])
        else:
            axes.set_axis_off()
    figure.savefig(path, dpi=110)


def _draw_case(axes: Axes, found: CaseResults) -> None:
    jobs = list(found.runs)[::-1]
    places = range(len(jobs))
    speeds = [found.speed(job) for job in jobs]
    medians = [speed.median for speed in speeds]
    ranges = (
        [speed.median - speed.low for speed in speeds],
        [speed.high - speed.median for speed in speeds],
    )
    colors = [_COLORS[TITLES[job].partition(",")[0]] for job in jobs]
    axes.barh(places, medians, xerr=ranges, color=colors, ecolor="#444444", height=0.7)
    axes.set_yticks(places, [TITLES[job] for job in jobs], fontsize=8)
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(f"{found.case.title}: records/s", fontsize=9)
