"""The client benchmark's results in words: Markdown for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.broker.report import json_document, markdown_document
from bench.client.contenders import TITLES
from bench.client.results import CaseResults, ClientResults, ClientRow
from bench.facts import headwater_fact, librdkafka_version, machine_fact, package_version
from bench.table import format_number, markdown_table, with_range

_CASE_HEADINGS = ["Records/s (min..max)", "MB/s", "Client CPU, us/record", "Memory", "Broker cores"]
_ROW_HEADINGS = ["Ours", "Peer", "Ratio (min..max)", "Goal", "Result"]


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {
        "Machine": machine_fact(directory),
        "Headwater": headwater_fact("numpy", "pyarrow"),
        "Peers": f"kafka-python {package_version('kafka-python')}, "
        f"aiokafka {package_version('aiokafka')}, "
        f"confluent-kafka {package_version('confluent-kafka')} with librdkafka "
        f"{librdkafka_version()}",
    }


def as_markdown(results: ClientResults, about: dict[str, str]) -> str:
    compared = [row for found in results.cases for row in found.rows()]
    tables = _tables(results, compared)
    return markdown_document(about, results, tables, [each.row for each in compared])


def as_json(results: ClientResults, about: dict[str, str]) -> dict[str, Any]:
    return json_document(about, results, cases=[found.as_json() for found in results.cases])


def _tables(results: ClientResults, compared: Sequence[ClientRow]) -> Iterator[list[str]]:
    for found in results.cases:
        if found.runs:
            rows = [_client_cells(found, job) for job in found.runs]
            yield markdown_table([found.case.title, *_CASE_HEADINGS], rows)
    if compared:
        yield markdown_table(["Case", *_ROW_HEADINGS], [_comparison_cells(row) for row in compared])


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
        row.goal_text,
        row.verdict.value,
    ]
