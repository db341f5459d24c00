"""The results of delays in words and as a picture."""

from __future__ import annotations

from pathlib import Path

from bench.curves import draw_curves
from bench.delay.run import DelayResults
from bench.facts import headwater_fact, machine_fact


def facts(directory: str) -> dict[str, str]:
    """What was measured with what, and where."""
    return {"Machine": machine_fact(directory), "Headwater": headwater_fact("uvloop")}


def draw(results: DelayResults, path: Path) -> None:
    label = "ms after the due time; of ordinary records, until they are acknowledged"
    draw_curves(results, path, label, "ordinary")
