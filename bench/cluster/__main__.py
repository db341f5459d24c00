"""`make bench-cluster`: measures three brokers beside Apache Kafka's three, and prints tables.

Ctrl-C ends it with the tables of what was measured until then. The exit code is 0 whether goals are
met or not, because a benchmark informs and a busy machine is easily wrong, and 1 if something could
not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.broker.chart import draw
from bench.broker.report import as_json, as_markdown, facts, librdkafka_version
from bench.broker.run import LOAD_MAX, interrupt
from bench.cluster import failover, latency, many_partitions, memory, throughput
from bench.cluster.clusters import CLUSTERS
from bench.cluster.pair import Pair
from bench.cluster.run import ClusterResults, Run
from bench.cluster.sizes import FULL, QUICK, TINY
from bench.table import markdown_table
from headwater import __version__

#: What is measured while both clusters run, and what needs the machine for one at a time.
TOGETHER = {
    "throughput": throughput.measure,
    "latency": latency.measure,
    "failover": failover.measure,
}
PARTITIONS = "partitions"
MEASUREMENTS = (*TOGETHER, PARTITIONS)

_DEFAULT_DIRECTORY = "build/bench-cluster"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    output, directory = Path(options.output or options.directory), Path(options.directory)
    for path in (output, directory):
        path.mkdir(parents=True, exist_ok=True)
    names = [name.replace("-", " ").title() for name in options.sides]
    results = ClusterResults(
        *(names if len(set(names)) == 2 else [f"{names[0]} A", f"{names[0]} B"])
    )
    about = facts(str(directory))
    about["clients"] = (
        f"librdkafka {librdkafka_version()} through confluent-kafka; Headwater's client "
        f"{__version__}"
    )
    busy = os.getloadavg()[0]
    if busy > LOAD_MAX:
        text = f"{busy:.1f} processes wanted to run in the minute before the start"
        about["machine"] += f"; busy with other work: {text}"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    previous = signal.signal(signal.SIGTERM, interrupt)
    save = partial(_write, output, results, about)
    try:
        with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as parent:
            place = Path(parent).absolute()
            pair = Pair(place, [CLUSTERS[side] for side in options.sides])
            _measure_all(Run(pair, sizes, results, place), options.only, save)
    except KeyboardInterrupt:
        results.is_interrupted = True
    finally:
        signal.signal(signal.SIGTERM, previous)
        save()
    print(_markdown(results, about))
    print(f"Written to {output}: cluster.md, cluster.json, cluster.png", file=sys.stderr)
    return 1 if results.failures or results.is_interrupted else 0


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
    if PARTITIONS in names:
        many_partitions.measure(run)
        save()


def _markdown(results: ClusterResults, about: dict[str, str]) -> str:
    text = as_markdown(results, about)
    if not results.alone:
        return text
    table = markdown_table(["Headwater alone", ""], [list(each) for each in results.alone])
    return "\n".join([text, *table, ""])


def _write(output: Path, results: ClusterResults, about: dict[str, str]) -> None:
    found = {**as_json(results, about), "alone": results.alone}
    (output / "cluster.md").write_text(_markdown(results, about))
    (output / "cluster.json").write_text(json.dumps(found, indent=2) + "\n")
    draw(results, output / "cluster.png")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-cluster", description="Measure a cluster beside one of Apache Kafka."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="ten minutes instead of an hour")
    size.add_argument("--tiny", action="store_true", help="a minute; figures mean nothing")
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
    parser.add_argument(
        "--directory",
        default=_DEFAULT_DIRECTORY,
        help="where to put the clusters' data (default: %(default)s)",
    )
    parser.add_argument(
        "--output", metavar="DIRECTORY", help="where to write the results (default: the same)"
    )
    options = parser.parse_args(arguments)
    options.only = options.only or list(MEASUREMENTS)
    return options


if __name__ == "__main__":
    sys.exit(main())
