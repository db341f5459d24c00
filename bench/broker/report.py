"""The benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bench.bench_run import Outcome
from bench.broker.results import Curve, Results, Row, Verdict
from bench.facts import headwater_fact, librdkafka_version, machine_fact, package_version
from bench.table import format_number, markdown_table, with_range
from headwater.testing.apache_kafka import KAFKA_VERSION


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "machine": machine_fact(directory),
        "headwater": headwater_fact("uvloop"),
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
    named = {names[key]: text for key, text in about.items()}
    curves = (_curve_table(curve, results) for curve in results.curves if curve.counts)
    tables = [*section_tables(results, with_cores=True), *curves]
    return markdown_document(named, results, tables, results.rows)


def as_json(results: Results, about: dict[str, str]) -> dict[str, Any]:
    return json_document(
        about,
        results,
        sides=[results.our_name, results.peer_name],
        rows=[row.as_json() for row in results.rows],
        curves=[curve.as_json() for curve in results.curves],
    )


def markdown_document(
    about: dict[str, str], outcome: Outcome, tables: Iterable[list[str]], rows: Sequence[Row]
) -> str:
    """All of a report: facts by their titles, tables, what failed, and what the goals came to."""
    lines = [f"- {title}: {text}" for title, text in about.items()]
    if outcome.is_interrupted:
        lines += ["", "The run was interrupted: this is what was measured until then."]
    for table in tables:
        lines += ["", *table]
    for failure in outcome.failures:
        lines += ["", f"Not measured: {failure}"]
    return "\n".join([*lines, "", _verdict_counts(rows), ""])


def json_document(about: dict[str, str], outcome: Outcome, **found: object) -> dict[str, Any]:
    return {
        "facts": about,
        **found,
        "failures": outcome.failures,
        "is_interrupted": outcome.is_interrupted,
    }


def section_tables(results: Results, *, with_cores: bool = False) -> Iterator[list[str]]:
    """The rows, with a table for each section."""
    headings = [results.our_name, results.peer_name, "Ratio (min..max)", "Goal", "Result"]
    if with_cores:
        headings.append("Broker cores")
    for section in dict.fromkeys(row.section for row in results.rows):
        rows = [_cells(row, with_cores) for row in results.rows if row.section == section]
        yield markdown_table([section, *headings], rows)


def _cells(row: Row, with_cores: bool) -> list[str]:
    cells = [
        row.what,
        f"{format_number(row.ours.median)} {row.unit}",
        f"{format_number(row.peer.median)} {row.unit}",
        with_range(row.ratio),
        row.goal_text,
        row.verdict.value,
    ]
    if with_cores:
        cells.append("" if row.cores is None else f"{row.cores[0]:.2f} / {row.cores[1]:.2f}")
    return cells


def _curve_table(curve: Curve, results: Results) -> list[str]:
    heading = f"{curve.what}: {curve.axis}"
    headings = [heading, f"{results.our_name}, {curve.unit}", f"{results.peer_name}, {curve.unit}"]
    rows = [
        [f"{count:,}", with_range(ours), with_range(peer)]
        for count, ours, peer in zip(curve.counts, curve.ours, curve.peer, strict=True)
    ]
    return markdown_table(headings, rows)


def _verdict_counts(rows: Sequence[Row]) -> str:
    """How many goals were reached, in a sentence."""
    verdicts = [row.verdict for row in rows if row.goal is not None]
    counts = [
        f"{verdicts.count(verdict)} {verdict.value}"
        for verdict in Verdict
        if verdict is not Verdict.NONE and verdict in verdicts
    ]
    return f"Of {len(verdicts)} goals: {', '.join(counts) or 'none measured'}."


def _java_version() -> str:
    try:
        printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return "no Java"
    return (printed.stderr.splitlines() or ["an unknown Java"])[0]
