"""The client benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

import platform
from typing import Any

from bench.broker.report import librdkafka_version, package_version, verdict_counts
from bench.client.contenders import TITLES
from bench.client.results import CaseResults, ClientResults, ClientRow
from bench.machine import Machine
from bench.table import format_number, markdown_table, with_range
from headwater import __version__

_CASE_HEADINGS = ["Records/s (min..max)", "MB/s", "Client CPU, us/record", "Memory", "Broker cores"]
_ROW_HEADINGS = ["Ours", "Peer", "Ratio (min..max)", "Goal", "Result"]


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "Machine": str(Machine.describe(directory)).removeprefix("Measured on ").removesuffix("."),
        "Headwater": f"{__version__} on {platform.python_implementation()} "
        f"{platform.python_version()}, numpy {package_version('numpy')}, "
        f"pyarrow {package_version('pyarrow')}",
        "Peers": f"kafka-python {package_version('kafka-python')}, "
        f"aiokafka {package_version('aiokafka')}, "
        f"confluent-kafka {package_version('confluent-kafka')} with librdkafka "
        f"{librdkafka_version()}",
    }


def as_markdown(results: ClientResults, about: dict[str, str]) -> str:
    lines = [f"- {name}: {text}" for name, text in about.items()]
    if results.is_interrupted:
        lines += ["", "The run was interrupted: this is what was measured until then."]
    for found in results.cases:
        if found.runs:
            rows = [_client_cells(found, job) for job in found.runs]
            lines += ["", *markdown_table([found.case.title, *_CASE_HEADINGS], rows)]
    rows = [_comparison_cells(row) for found in results.cases for row in found.rows()]
    if rows:
        lines += ["", *markdown_table(["Case", *_ROW_HEADINGS], rows)]
    for failure in results.failures:
        lines += ["", f"Not measured: {failure}"]
    lines += ["", verdict_counts([row.row for found in results.cases for row in found.rows()]), ""]
    return "\n".join(lines)


def as_json(results: ClientResults, about: dict[str, str]) -> dict[str, Any]:
    return {
        "facts": about,
        "cases": [found.as_json() for found in results.cases],
        "failures": results.failures,
        "is_interrupted": results.is_interrupted,
    }


def _client_cells(found: CaseResults, job: str) -> list[str]:
    speed = found.speed(job)
    megabytes_per_s = speed.median * found.case.record_size_bytes / 1e6
    return [
        TITLES[job],
        with_range(speed),
        format_number(megabytes_per_s),
        format_number(found.cpu_us(job)),
        f"{format_number(found.resident_megabytes(job))} MB",
        f"{found.broker_cores(job):.2f}",
    ]


def _comparison_cells(compared: ClientRow) -> list[str]:
    row = compared.row
    return [
        row.section,
        f"{row.what}: {format_number(row.ours.median)}",
        f"{compared.peer_name}: {format_number(row.peer.median)}",
        with_range(row.ratio),
        row.goal.text(row.unit) if row.goal is not None else "",
        row.verdict.value,
    ]
