"""`make bench-client`: measures our client beside the others on one broker and prints the tables.

Ctrl-C ends it with the tables of what was measured until then. The exit code is 0 whether goals are
met or not, because a benchmark informs and a busy machine is easily wrong, and 1 if something could
not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.broker.run import LOAD_MAX, interrupt
from bench.broker.servers import HeadwaterServer
from bench.broker.warm_up import warm_up
from bench.client.cases import CONSUME, FULL, PRODUCE, QUICK, TINY, Sizes
from bench.client.chart import draw
from bench.client.contenders import CONSUMERS, PRODUCERS
from bench.client.measurement import Measurement
from bench.client.report import as_json, as_markdown, facts
from bench.client.results import ClientResults

_DEFAULT_DIRECTORY = "build/bench-client"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    directory, output = Path(options.directory), Path(options.output or options.directory)
    for path in (output, directory):
        path.mkdir(parents=True, exist_ok=True)
    results = ClientResults()
    about = facts(str(directory))
    busy = os.getloadavg()[0]
    if busy > LOAD_MAX:
        text = f"{busy:.1f} processes wanted to run in the minute before the start"
        about["Machine"] += f"; busy with other work: {text}"
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        _measure_all(sizes, options, directory, output, results, about)
    except KeyboardInterrupt:
        results.is_interrupted = True
    finally:
        signal.signal(signal.SIGTERM, previous)
        _write(output, results, about)
    print(as_markdown(results, about))
    print(f"Written to {output}: client.md, client.json, client.png", file=sys.stderr)
    return 1 if results.failures or results.is_interrupted else 0


def _measure_all(
    sizes: Sizes,
    options: argparse.Namespace,
    directory: Path,
    output: Path,
    results: ClientResults,
    about: dict[str, str],
) -> None:
    """Every case that is asked for; what there is, is saved after each."""
    parent = Path(tempfile.mkdtemp(dir=directory)).absolute()
    server = HeadwaterServer(parent)
    try:
        server.start()
        measurement = Measurement(server, sizes, results)
        measurement.say("the broker warms up")
        warm_up(server, sizes.warm_up_s)
        for case in sizes.cases:
            if case.direction in options.only:
                measurement.measure(
                    case, lambda each: not options.client or each.job in options.client
                )
                _write(output, results, about)
    finally:
        server.kill()
        shutil.rmtree(parent, ignore_errors=True)


def _write(output: Path, results: ClientResults, about: dict[str, str]) -> None:
    (output / "client.md").write_text(as_markdown(results, about))
    (output / "client.json").write_text(json.dumps(as_json(results, about), indent=2) + "\n")
    draw(results, output / "client.png")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-client", description="Measure our client beside the other Python clients."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="three minutes instead of forty")
    size.add_argument("--tiny", action="store_true", help="seconds; figures mean nothing")
    parser.add_argument(
        "--only",
        action="append",
        choices=(PRODUCE, CONSUME),
        help="only this direction",
    )
    jobs = [each.job for each in (*PRODUCERS, *CONSUMERS)]
    parser.add_argument(
        "--client",
        action="append",
        choices=jobs,
        metavar="NAME",
        help=f"only this client, may be repeated: {', '.join(jobs)}",
    )
    parser.add_argument(
        "--directory",
        default=_DEFAULT_DIRECTORY,
        help="where to put the broker's data (default: %(default)s)",
    )
    parser.add_argument(
        "--output", metavar="DIRECTORY", help="where to write the results (default: the same)"
    )
    options = parser.parse_args(arguments)
    options.only = options.only or [PRODUCE, CONSUME]
    return options


if __name__ == "__main__":
    sys.exit(main())
