"""The Spark benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

import platform
import statistics
from typing import Any

from bench.broker.report import package_version, verdict_counts
from bench.broker.results import Row
from bench.machine import Machine
from bench.spark.run import CostRow, SparkResults
from bench.spark.sides import MASTER
from bench.table import format_number, markdown_table, with_range
from headwater import __version__
from headwater.testing.spark_connector import description

_COST_HEADINGS = ["CPU, us/row", "Connector", "Java", "Python workers", "Broker", "In use"]


def facts(directory: str, java: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "Machine": str(Machine.describe(directory)).removeprefix("Measured on ").removesuffix("."),
        "Headwater": f"{__version__} on {platform.python_implementation()} "
        f"{platform.python_version()}, numpy {package_version('numpy')}, "
        f"pyarrow {package_version('pyarrow')}",
        "Spark": f"{package_version('pyspark')}, {MASTER}, {java}",
        "Peer": description(),
    }


def as_markdown(results: SparkResults, about: dict[str, str]) -> str:
    lines = [f"- {name}: {text}" for name, text in about.items()]
    if results.is_interrupted:
        lines += ["", "The run was interrupted: this is what was measured until then."]
    for section in dict.fromkeys(row.section for row in results.rows):
        rows = [_cells(row) for row in results.rows if row.section == section]
        headings = [section, results.our_name, results.peer_name, "Ratio (min..max)"]
        lines += ["", *markdown_table([*headings, "Goal", "Result"], rows)]
    if results.costs:
        rows = [_cost_cells(row) for row in results.costs]
        lines += ["", *markdown_table(_COST_HEADINGS, rows)]
    for failure in results.failures:
        lines += ["", f"Not measured: {failure}"]
    lines += ["", verdict_counts(results.rows), ""]
    return "\n".join(lines)


def as_json(results: SparkResults, about: dict[str, str]) -> dict[str, Any]:
    return {
        "facts": about,
        "sides": [results.our_name, results.peer_name],
        "rows": [row.as_json() for row in results.rows],
        "costs": [
            {
                "what": row.what,
                "side": row.side.format_name,
                "row_count": row.row_count,
                "rounds": [costs._asdict() for costs in row.costs],
            }
            for row in results.costs
        ],
        "failures": results.failures,
        "is_interrupted": results.is_interrupted,
    }


def _cells(row: Row) -> list[str]:
    return [
        row.what,
        f"{format_number(row.ours.median)} {row.unit}",
        f"{format_number(row.peer.median)} {row.unit}",
        with_range(row.ratio),
        row.goal.text(row.unit) if row.goal is not None else "",
        row.verdict.value,
    ]


def _cost_cells(row: CostRow) -> list[str]:
    def per_row_us(seconds: list[float]) -> str:
        return format_number(statistics.median(seconds) * 1e6 / row.row_count)

    busy = [(each.java_s + each.python_s + each.broker_s) / each.clock_s for each in row.costs]
    return [
        row.what,
        row.side.format_name,
        per_row_us([each.java_s for each in row.costs]),
        per_row_us([each.python_s for each in row.costs]),
        per_row_us([each.broker_s for each in row.costs]),
        f"{statistics.median(busy):.2f} cores",
    ]
