"""The results of retries in words and as a picture."""

from __future__ import annotations

from pathlib import Path

from bench.curves import draw_curves
from bench.facts import headwater_fact, machine_fact
from bench.retry.run import RetryResults


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {"Machine": machine_fact(directory), "Headwater": headwater_fact("uvloop")}


def draw(results: RetryResults, path: Path) -> None:
    label = "ms from send to handler; of retries, from when they were due"
    draw_curves(results, path, label, "good records, nothing fails")
