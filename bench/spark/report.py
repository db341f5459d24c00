"""The Spark benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

import statistics
from typing import Any

from bench.broker.report import json_document, markdown_document, section_tables
from bench.facts import headwater_fact, package_version
from bench.spark.run import CostRow, SparkResults
from bench.spark.sides import MASTER
from bench.table import format_number, markdown_table
from headwater.testing.spark_connector import description

_COST_HEADINGS = ["CPU, us/row", "Connector", "Java", "Python workers", "Broker", "In use"]


def facts(machine: str, java: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "Machine": machine,
        "Headwater": headwater_fact("numpy", "pyarrow"),
        "Spark": f"{package_version('pyspark')}, {MASTER}, {java}",
        "Peer": description(),
    }


def as_markdown(results: SparkResults, about: dict[str, str]) -> str:
    tables = list(section_tables(results))
    if results.costs:
        tables.append(markdown_table(_COST_HEADINGS, [_cost_cells(row) for row in results.costs]))
    return markdown_document(about, results, tables, results.rows)


def as_json(results: SparkResults, about: dict[str, str]) -> dict[str, Any]:
    return json_document(
        about,
        results,
        sides=[results.our_name, results.peer_name],
        rows=[row.as_json() for row in results.rows],
        costs=[
            {
                "what": row.what,
                "side": row.side.format_name,
                "row_count": row.row_count,
                "rounds": [costs._asdict() for costs in row.costs],
            }
            for row in results.costs
        ],
    )


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
