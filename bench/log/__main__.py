"""`make bench-log`: runs every measurement and prints the table.

The exit code is 0 whether goals are met or not: a benchmark informs, and on a busy machine it is
easily wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from bench.bench_command import BenchParser
from bench.log import (
    acknowledgements,
    append,
    compaction,
    lookup,
    memory,
    partitions,
    reading,
    recovery,
)
from bench.log.sizes import FULL, QUICK, TINY, Sizes
from bench.machine import Machine
from bench.table import Row, as_json, as_markdown

Measure = Callable[[str, Sizes], list[Row]]

MEASUREMENTS: dict[str, Measure] = {
    "append": append.measure_large,
    "read": reading.measure,
    "lookup": lookup.measure,
    "recovery": recovery.measure,
    "memory": memory.measure,
    "partitions": partitions.measure,
    "single": append.measure_single_records,
    "fsync": acknowledgements.measure,
    "compaction": compaction.measure,
}

_DEFAULT_DIRECTORY = "build/bench"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    os.makedirs(options.directory, exist_ok=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.directory) as parent:
        machine = Machine.describe(parent)
        for name in options.only or MEASUREMENTS:
            start = perf_counter()
            rows += MEASUREMENTS[name](parent, options.sizes)
            print(f"{name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    markdown = as_markdown(machine, rows)
    print(markdown)
    if options.markdown is not None:
        options.markdown.write_text(markdown)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(machine, rows), indent=2) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-log", description="Measure the partition log against bare system calls."
    )
    parser.add_sizes(FULL, QUICK, TINY, times=("a minute instead of five", "seconds"))
    parser.add_choice("--only", "measurement", MEASUREMENTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument(
        "--directory",
        default=_DEFAULT_DIRECTORY,
        help="where to put the logs, on the disk to be measured (default: %(default)s)",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    logging.getLogger("headwater").setLevel(logging.ERROR)  # Recovery warns of what it cuts.
    sys.exit(main())
