"""`make bench-broker`: measures the broker beside Apache Kafka and prints the tables.

Ctrl-C ends it with the tables of what was measured until then. The exit code is 0 whether goals are
met or not, because a benchmark informs and a busy machine is easily wrong, and 1 if something could
not be measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

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
from bench.broker.run import CLIENTS, LOAD_MAX, Run, interrupt
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

_DEFAULT_DIRECTORY = "build/bench-broker"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    output = Path(options.output or options.directory)
    directory = Path(options.directory)
    for path in (output, directory):
        path.mkdir(parents=True, exist_ok=True)
    makers = SERVERS[options.sides[0]], SERVERS[options.sides[1]]
    names = [name.replace("-", " ").title() for name in options.sides]
    results = Results(*(names if len(set(names)) == 2 else [f"{names[0]} A", f"{names[0]} B"]))
    about = facts(str(directory))
    busy = os.getloadavg()[0]
    if busy > LOAD_MAX:
        text = f"{busy:.1f} processes wanted to run in the minute before the start"
        about["machine"] += f"; busy with other work: {text}"
    # Where this is set every start compiles all modules anew, which it does for no user.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as parent:
            run = Run(Pair(Path(parent).absolute(), makers), sizes, results, tuple(options.client))
            with contextlib.closing(run.java):
                save = partial(_write, output, results, about)
                _measure_all(run, options.only, save)
    except KeyboardInterrupt:
        results.is_interrupted = True
    finally:
        signal.signal(signal.SIGTERM, previous)
        _write(output, results, about)
    print(as_markdown(results, about))
    print(f"Written to {output}: broker.md, broker.json, broker.png", file=sys.stderr)
    return 1 if results.failures or results.is_interrupted else 0


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


def _write(output: Path, results: Results, about: dict[str, str]) -> None:
    (output / "broker.md").write_text(as_markdown(results, about))
    (output / "broker.json").write_text(json.dumps(as_json(results, about), indent=2) + "\n")
    draw(results, output / "broker.png")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-broker", description="Measure the broker beside Apache Kafka."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="five minutes instead of half an hour")
    size.add_argument("--tiny", action="store_true", help="seconds; figures mean nothing")
    parser.add_argument(
        "--only",
        action="append",
        type=_names,
        metavar="NAMES",
        help=f"only these measurements, with commas between them: {', '.join(MEASUREMENTS)}",
    )
    parser.add_argument(
        "--client",
        action="append",
        choices=CLIENTS,
        metavar="NAME",
        help=f"only this client, may be repeated: {', '.join(CLIENTS)}",
    )
    parser.add_argument(
        "--sides",
        nargs=2,
        choices=SERVERS,
        metavar="NAME",
        default=["headwater", "apache-kafka"],
        help="the two to compare; twice the same shows how much is noise (default: %(default)s)",
    )
    parser.add_argument(
        "--directory",
        default=_DEFAULT_DIRECTORY,
        help="where to put the data, on the disk to be measured (default: %(default)s)",
    )
    parser.add_argument(
        "--output", metavar="DIRECTORY", help="where to write the results (default: the same)"
    )
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
