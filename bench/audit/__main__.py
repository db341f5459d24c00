"""`make bench-audit`: measures what audit and trace cost, and prints a table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.audit import append, clients, search
from bench.audit.run import AuditResults, Run
from bench.audit.sizes import FULL, QUICK, TINY
from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.curves import as_json, as_markdown, draw_curves
from bench.facts import headwater_fact, machine_fact

MEASUREMENTS: dict[str, Callable[[Run], None]] = {
    "append": append.measure,
    "clients": clients.measure,
    "search": search.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    results = AuditResults()
    about = {"Machine": machine_fact(str(directory)), "Headwater": headwater_fact("uvloop")}
    report = BenchReport("audit", output, results, about, as_markdown, as_json, _draw)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(scratch: Path) -> None:
        run = Run(results, options.sizes, scratch)
        for name in options.only or MEASUREMENTS:
            MEASUREMENTS[name](run)
            report.save()

    return run_bench(report, directory, measure)


def _draw(results: AuditResults, path: Path) -> None:
    draw_curves(results, path, "ms", "-")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-audit",
        description="Measure what audit and trace cost, and how fast a message is found.",
    )
    times = "two minutes instead of twenty", "half a minute"
    parser.add_sizes(FULL, QUICK, TINY, times=times)
    parser.add_choice("--only", "measurement", MEASUREMENTS)
    parser.add_directories("the brokers' data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
