"""The results of clusters in words: as the broker's, and behind them what has no peer."""

from __future__ import annotations

from typing import Any

from bench.broker import report
from bench.cluster.run import ClusterResults
from bench.facts import librdkafka_version
from bench.table import markdown_table
from headwater import __version__


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    clients = (
        f"librdkafka {librdkafka_version()} through confluent-kafka; Headwater's client "
        f"{__version__}"
    )
    return {**report.facts(directory), "clients": clients}


def as_markdown(results: ClusterResults, about: dict[str, str]) -> str:
    text = report.as_markdown(results, about)
    if not results.alone:
        return text
    table = markdown_table(["Headwater alone", ""], results.alone)
    return "\n".join([text, *table, ""])


def as_json(results: ClusterResults, about: dict[str, str]) -> dict[str, Any]:
    return {**report.as_json(results, about), "alone": results.alone}
