"""`make bench-client`: measures our client beside others on one broker and prints the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.broker.servers import HeadwaterServer
from bench.broker.warm_up import warm_up
from bench.client.cases import CONSUME, FULL, PRODUCE, QUICK, TINY
from bench.client.chart import draw
from bench.client.contenders import CONSUMERS, PRODUCERS
from bench.client.measurement import Measurement
from bench.client.report import as_json, as_markdown, facts
from bench.client.results import ClientResults


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    results = ClientResults()
    about = facts(str(directory))
    report = BenchReport("client", output, results, about, as_markdown, as_json, draw)

    def measure(scratch: Path) -> None:
        """Every case that is asked for; what there is, is saved after each."""
        server = HeadwaterServer(scratch)
        try:
            server.start()
            measurement = Measurement(results, server, options.sizes)
            measurement.say("the broker warms up")
            warm_up(server, options.sizes.warm_up_s)
            for case in options.sizes.cases:
                if not options.only or case.direction in options.only:
                    measurement.measure(
                        case, lambda each: not options.client or each.job in options.client
                    )
                    report.save()
        finally:
            server.kill()

    return run_bench(report, directory, measure)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-client", description="Measure our client beside the other Python clients."
    )
    parser.add_sizes(
        FULL, QUICK, TINY, times=("a quarter of an hour instead of 35 minutes", "seconds")
    )
    parser.add_argument(
        "--only", action="append", choices=(PRODUCE, CONSUME), help="only this direction"
    )
    parser.add_choice("--client", "client", [each.job for each in (*PRODUCERS, *CONSUMERS)])
    parser.add_directories("the broker's data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
