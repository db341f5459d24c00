"""`make bench-cluster`: measures three brokers beside Apache Kafka's three, and prints tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.broker.chart import draw
from bench.cluster import failover, latency, many_partitions, memory, moves, throughput
from bench.cluster.clusters import CLUSTERS
from bench.cluster.pair import Pair
from bench.cluster.report import as_json, as_markdown, facts
from bench.cluster.run import ClusterResults, Run
from bench.cluster.sizes import FULL, QUICK, TINY

#: What is measured while both clusters run, and what needs the machine for one at a time.
TOGETHER = {
    "throughput": throughput.measure,
    "latency": latency.measure,
    "failover": failover.measure,
}
ALONE = {
    "partitions": many_partitions.measure,
    "moves": moves.measure,
}
MEASUREMENTS = (*TOGETHER, *ALONE)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    results = ClusterResults.of_sides(options.sides)
    about = facts(str(directory))
    report = BenchReport("cluster", output, results, about, as_markdown, as_json, draw)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(scratch: Path) -> None:
        pair = Pair(scratch, [CLUSTERS[side] for side in options.sides])
        run = Run(results, pair, options.sizes, scratch)
        _measure_all(run, options.only or MEASUREMENTS, report.save)

    return run_bench(report, directory, measure)


def _measure_all(run: Run, names: Sequence[str], save: Callable[[], None]) -> None:
    """Everything that is named; what there is, is saved after each part."""
    together = [name for name in TOGETHER if name in names]
    if together:
        run.say("both clusters start")
        with run.pair.started() as clusters:
            memory.measure(run, clusters, "after the start")
            for cluster in clusters:
                run.say(f"{cluster.name} warms up")
                throughput.warm_up(cluster, run.sizes.warm_up_s)
            for name in together:
                TOGETHER[name](run, clusters)
                save()
            memory.measure(run, clusters, "after the load")
            save()
    for name in [name for name in ALONE if name in names]:
        ALONE[name](run)
        save()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-cluster", description="Measure a cluster beside one of Apache Kafka."
    )
    times = "ten minutes instead of an hour", "a minute"
    parser.add_sizes(FULL, QUICK, TINY, times=times)
    parser.add_argument(
        "--only",
        action="append",
        choices=MEASUREMENTS,
        help="only this measurement; may be repeated",
    )
    parser.add_argument(
        "--sides",
        nargs=2,
        default=["headwater", "apache-kafka"],
        choices=list(CLUSTERS),
        metavar="CLUSTER",
        help=f"what to compare, of {', '.join(CLUSTERS)} (default: %(default)s)",
    )
    parser.add_directories("the clusters' data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
