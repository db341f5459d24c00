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
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.directory) as parent:
        machine = Machine.describe(parent)
        for name in options.only or MEASUREMENTS:
            start = perf_counter()
            rows += MEASUREMENTS[name](parent, sizes)
            print(f"{name}: {perf_counter() - start:.1f} s", file=sys.stderr)
    markdown = as_markdown(machine, rows)
    print(markdown)
    if options.markdown is not None:
        options.markdown.write_text(markdown)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(machine, rows), indent=2) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-log", description="Measure the partition log against bare system calls."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a minute instead of five")
    size.add_argument("--tiny", action="store_true", help="seconds; figures mean nothing")
    parser.add_argument(
        "--only",
        action="append",
        choices=MEASUREMENTS,
        metavar="NAME",
        help=f"only this measurement, may be repeated: {', '.join(MEASUREMENTS)}",
    )
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
