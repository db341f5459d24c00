"""Results that are rows of a table and curves of latencies, in words and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.bench_run import Outcome
from bench.broker.report import json_document
from bench.rounds import percentile
from bench.table import Row, markdown_table

_HEADINGS = ["What", "Headwater", "Beside", "Ratio (p10..p90)", "Goal", "Met"]
_SHARES = [number / 1000 for number in range(1000)]


@dataclass(slots=True)
class CurveResults(Outcome):
    rows: list[Row] = field(default_factory=list)
    #: Latencies to draw, in ms, by what they are of.
    curves: dict[str, list[float]] = field(default_factory=dict)


def as_markdown(results: CurveResults, about: dict[str, str]) -> str:
    lines = [f"- {title}: {text}" for title, text in about.items()]
    if results.is_interrupted:
        lines += ["", "The run was interrupted: this is what was measured until then."]
    if results.rows:
        lines += ["", *markdown_table(_HEADINGS, [row.cells() for row in results.rows])]
    for failure in results.failures:
        lines += ["", f"Not measured: {failure}"]
    return "\n".join([*lines, ""])


def as_json(results: CurveResults, about: dict[str, str]) -> dict[str, Any]:
    percentiles = {
        name: {str(share): percentile(values, share) for share in (0.5, 0.9, 0.99, 0.999, 1.0)}
        for name, values in results.curves.items()
        if values
    }
    rows = [row.as_json() for row in results.rows]
    return json_document(about, results, rows=rows, percentiles=percentiles)


def draw_curves(results: CurveResults, path: Path, label: str, dashed: str) -> None:
    """How late which share is: write the picture; nothing if there is nothing to show.

    Curves whose names begin with `dashed` are there to compare with.
    """
    curves = {name: values for name, values in results.curves.items() if values}
    if not curves:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for name, values in curves.items():
        ordered = sorted(values)
        # What is drawn to a logarithmic scale is never nothing.
        shown = [max(ordered[int(share * len(ordered))], 0.01) for share in _SHARES]
        style = "--" if name.startswith(dashed) else "-"
        axes.plot(shown, [share * 100 for share in _SHARES], style, label=name)
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.set_ylabel("% of all")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
