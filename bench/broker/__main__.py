"""`make bench`: measures the broker beside Apache Kafka and prints the tables."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.broker import (
    first_record,
    groups,
    growth,
    latency,
    requests,
    start,
    throughput,
    transactions,
)
from bench.broker.chart import draw
from bench.broker.report import as_json, as_markdown, facts
from bench.broker.results import Results
from bench.broker.run import CLIENTS, Run
from bench.broker.servers import SERVERS, Pair, Server
from bench.broker.sizes import FULL, QUICK, TINY
from bench.broker.warm_up import warm_up

#: What is measured from the start of the servers on, each time with fresh ones.
FROM_START: dict[str, Callable[[Run], None]] = {
    "start": start.measure,
    "partitions": growth.measure_partitions,
    "groups": first_record.measure_from_start,
}
#: What is measured on servers that run and are warm.
WHILE_RUNNING: dict[str, Callable[[Run, tuple[Server, Server]], None]] = {
    "throughput": throughput.measure,
    "requests": requests.measure,
    "latency": latency.measure,
    "connections": growth.measure_connections,
    "groups": groups.measure,
    "transactions": transactions.measure,
}
MEASUREMENTS = list(dict.fromkeys([*FROM_START, *WHILE_RUNNING]))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    makers = SERVERS[options.sides[0]], SERVERS[options.sides[1]]
    results = Results.of_sides(options.sides)
    about = facts(str(directory))
    report = BenchReport("broker", output, results, about, as_markdown, as_json, draw)
    # Where this is set every start compiles all modules anew, which it does for no user.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(scratch: Path) -> None:
        run = Run(results, Pair(scratch, makers), options.sizes, tuple(options.client))
        with contextlib.closing(run.java):
            _measure_all(run, options.only, report.save)

    return run_bench(report, directory, measure)


def _measure_all(run: Run, names: Sequence[str], save: Callable[[], None]) -> None:
    """Everything that is named; what there is, is saved after each part."""
    while_running = [name for name in WHILE_RUNNING if name in names]
    if while_running:
        with run.pair.started() as servers:
            for server in servers:
                run.say(f"{server.name} warms up")
                warm_up(server, run.sizes.warm_up_s)
            for name in while_running:
                run.attempt(name, partial(WHILE_RUNNING[name], run, servers))
                save()
    for name in FROM_START:
        if name in names:
            run.attempt(name, partial(FROM_START[name], run))
            save()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(prog="bench-broker", description="Measure the broker beside Apache Kafka.")
    parser.add_sizes(FULL, QUICK, TINY, times=("five minutes instead of half an hour", "seconds"))
    parser.add_argument(
        "--only",
        action="append",
        type=_names,
        metavar="NAMES",
        help=f"only these measurements, with commas between them: {', '.join(MEASUREMENTS)}",
    )
    parser.add_choice("--client", "client", CLIENTS)
    parser.add_argument(
        "--sides",
        nargs=2,
        choices=SERVERS,
        metavar="NAME",
        default=["headwater", "apache-kafka"],
        help="the two to compare; twice the same shows how much is noise (default: %(default)s)",
    )
    parser.add_directories("the data, on the disk to be measured")
    options = parser.parse_args(arguments)
    options.client = options.client or list(CLIENTS)
    options.only = [name for names in options.only or [MEASUREMENTS] for name in names]
    return options


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in MEASUREMENTS:
            raise argparse.ArgumentTypeError(
                f"no measurement {name!r}: there are {', '.join(MEASUREMENTS)}"
            )
    return names


if __name__ == "__main__":
    sys.exit(main())
