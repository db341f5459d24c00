"""`make bench-delay`: measures delayed delivery, and prints a table."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.curves import as_json, as_markdown
from bench.delay import burst, cost, lateness, unchanged, waiting
from bench.delay.report import draw, facts
from bench.delay.run import DelayResults, Run
from bench.delay.sizes import FULL, QUICK, TINY

MEASUREMENTS: dict[str, Callable[[Run], None]] = {
    "lateness": lateness.measure,
    "burst": burst.measure,
    "waiting": waiting.measure,
    "cost": cost.measure,
    "unchanged": unchanged.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    results = DelayResults()
    report = BenchReport(
        "delay", output, results, facts(str(directory)), as_markdown, as_json, draw
    )
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(scratch: Path) -> None:
        sizes = options.sizes
        if options.waiting is not None:
            sizes = dataclasses.replace(sizes, waiting_count=options.waiting)
        run = Run(results, sizes, scratch, options.before)
        for name in options.only or MEASUREMENTS:
            MEASUREMENTS[name](run)
            report.save()

    return run_bench(report, directory, measure)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-delay", description="Measure how late delayed messages are, and their cost."
    )
    times = "three minutes instead of half an hour", "half a minute"
    parser.add_sizes(FULL, QUICK, TINY, times=times)
    parser.add_choice("--only", "measurement", MEASUREMENTS)
    parser.add_argument(
        "--waiting",
        type=int,
        metavar="COUNT",
        help="let so many wait: 100000000 takes an hour and 20 GB of disk",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="DIRECTORY",
        help="a checkout from before there were delays, to compare appends with",
    )
    parser.add_directories("the brokers' data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
