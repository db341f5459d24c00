"""The benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from bench.broker.results import Curve, Results, Row, Verdict
from bench.machine import Machine
from bench.table import format_number, markdown_table, with_range
from headwater import __version__
from headwater.testing.apache_kafka import KAFKA_VERSION


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "machine": str(Machine.describe(directory)).removeprefix("Measured on ").removesuffix("."),
        "headwater": f"{__version__} on {platform.python_implementation()} "
        f"{platform.python_version()}, uvloop {package_version('uvloop')}",
        "apache_kafka": f"{KAFKA_VERSION} on {_java_version()}, heap 1 GB, G1",
        "clients": f"Apache Kafka's Java client {KAFKA_VERSION}; librdkafka "
        f"{librdkafka_version()} through confluent-kafka {package_version('confluent-kafka')}",
    }


def as_markdown(results: Results, about: dict[str, str]) -> str:
    names = {
        "machine": "Machine",
        "headwater": "Headwater",
        "apache_kafka": "Apache Kafka",
        "clients": "Clients",
    }
    lines = [f"- {names[key]}: {text}" for key, text in about.items()]
    if results.is_interrupted:
        lines += ["", "The run was interrupted: this is what was measured until then."]
    for section in dict.fromkeys(row.section for row in results.rows):
        rows = [row for row in results.rows if row.section == section]
        headings = [section, results.our_name, results.peer_name, "Ratio (min..max)"]
        headings += ["Goal", "Result", "Broker cores"]
        lines += ["", *markdown_table(headings, [_cells(row) for row in rows])]
    for curve in results.curves:
        if curve.counts:
            lines += ["", *_curve_table(curve, results)]
    for failure in results.failures:
        lines += ["", f"Not measured: {failure}"]
    lines += ["", verdict_counts(results.rows), ""]
    return "\n".join(lines)


def as_json(results: Results, about: dict[str, str]) -> dict[str, Any]:
    return {
        "facts": about,
        "sides": [results.our_name, results.peer_name],
        "rows": [row.as_json() for row in results.rows],
        "curves": [curve.as_json() for curve in results.curves],
        "failures": results.failures,
        "is_interrupted": results.is_interrupted,
    }


def _cells(row: Row) -> list[str]:
    cores = "" if row.cores is None else f"{row.cores[0]:.2f} / {row.cores[1]:.2f}"
    return [
        row.what,
        f"{format_number(row.ours.median)} {row.unit}",
        f"{format_number(row.peer.median)} {row.unit}",
        with_range(row.ratio),
        row.goal.text(row.unit) if row.goal is not None else "",
        row.verdict.value,
        cores,
    ]


def _curve_table(curve: Curve, results: Results) -> list[str]:
    heading = f"{curve.what}: {curve.axis}"
    headings = [heading, f"{results.our_name}, {curve.unit}", f"{results.peer_name}, {curve.unit}"]
    rows = [
        [f"{count:,}", with_range(ours), with_range(peer)]
        for count, ours, peer in zip(curve.counts, curve.ours, curve.peer, strict=True)
    ]
    return markdown_table(headings, rows)


def verdict_counts(rows: Sequence[Row]) -> str:
    """How many goals were reached, in a sentence."""
    verdicts = [row.verdict for row in rows if row.goal is not None]
    counts = [
        f"{verdicts.count(verdict)} {verdict.value}"
        for verdict in Verdict
        if verdict is not Verdict.NONE and verdict in verdicts
    ]
    return f"Of {len(verdicts)} goals: {', '.join(counts) or 'none measured'}."


def package_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def librdkafka_version() -> str:
    try:
        from confluent_kafka import libversion
    except ImportError:
        return "(not installed)"
    return str(libversion()[0])


def _java_version() -> str:
    try:
        printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "no Java"
    return (printed.stderr.splitlines() or ["an unknown Java"])[0]
