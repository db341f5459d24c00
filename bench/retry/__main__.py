"""`make bench-retry`: measures workers, retries and redrives, and prints a table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.curves import as_json, as_markdown
from bench.retry import failing, overhead, redrive
from bench.retry.report import draw, facts
from bench.retry.run import RetryResults, Run
from bench.retry.sizes import FULL, QUICK, TINY

MEASUREMENTS: dict[str, Callable[[Run], None]] = {
    "overhead": overhead.measure,
    "failing": failing.measure,
    "redrive": redrive.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    results = RetryResults()
    report = BenchReport(
        "retry", output, results, facts(str(directory)), as_markdown, as_json, draw
    )
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(scratch: Path) -> None:
        run = Run(results, options.sizes, scratch)
        for name in options.only or MEASUREMENTS:
            MEASUREMENTS[name](run)
            report.save()

    return run_bench(report, directory, measure)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-retry",
        description="Measure what workers cost, how they fare with failures, and a redrive.",
    )
    times = "three minutes instead of half an hour", "half a minute"
    parser.add_sizes(FULL, QUICK, TINY, times=times)
    parser.add_choice("--only", "measurement", MEASUREMENTS)
    parser.add_directories("the brokers' data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
