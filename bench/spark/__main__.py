"""`make bench-spark`: measures our connector beside Spark's own on one broker and one Spark.

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
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.broker.chart import draw
from bench.broker.run import LOAD_MAX, interrupt
from bench.broker.servers import HeadwaterServer
from bench.spark import latency, reading, writing
from bench.spark.report import as_json, as_markdown, facts
from bench.spark.run import Run, SparkResults
from bench.spark.sides import HEADWATER, MASTER, OFFICIAL
from bench.spark.sizes import FULL, QUICK, TINY, Sizes
from headwater.java.installation import ProgramUnavailable
from headwater.pipeline.spark.errors import SparkUnavailable
from headwater.pipeline.spark.session import start_session
from headwater.testing.spark_connector import resolve_connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEASUREMENTS = {
    "reading": reading.measure,
    "writing": writing.measure,
    "latency": latency.measure,
}
_DEFAULT_DIRECTORY = "build/bench-spark"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    directory, output = Path(options.directory), Path(options.output or options.directory)
    for path in (output, directory):
        path.mkdir(parents=True, exist_ok=True)
    busy = os.getloadavg()[0]
    try:
        spark = start_spark()
    except (ProgramUnavailable, SparkUnavailable) as unavailable:
        print(unavailable, file=sys.stderr)
        return 1
    results = SparkResults(
        f'format("{HEADWATER.format_name}")', f'format("{OFFICIAL.format_name}")'
    )
    about = facts(str(directory), java_version(spark))
    if busy > LOAD_MAX:
        text = f"{busy:.1f} processes wanted to run in the minute before the start"
        about["Machine"] += f"; busy with other work: {text}"
    save = partial(_write, output, results, about)
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as parent:
            _measure_all(spark, Path(parent).absolute(), sizes, options.only, results, save)
    except KeyboardInterrupt:
        results.is_interrupted = True
    finally:
        signal.signal(signal.SIGTERM, previous)
        save()
        spark.stop()
    print(as_markdown(results, about))
    print(f"Written to {output}: spark.md, spark.json, spark.png", file=sys.stderr)
    return 1 if results.failures or results.is_interrupted else 0


def start_spark() -> SparkSession:
    """A session that has both connectors."""

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    return start_session(
        "bench-spark",
        master=MASTER,
        configs={
            "spark.jars": ",".join(map(str, resolve_connector_jars(say))),
            "spark.ui.enabled": "false",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            # The latency of records is read from it.
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
        },
        say=say,
    )


def java_version(spark: SparkSession) -> str:
    properties = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    return f"Java {properties.getProperty('java.version')}"


def java_pid(spark: SparkSession) -> int:
    """The process that runs Spark and starts its Python workers."""
    handles = spark.sparkContext._jvm.java.lang.ProcessHandle  # type: ignore[union-attr]
    return int(handles.current().pid())


def _measure_all(
    spark: SparkSession,
    directory: Path,
    sizes: Sizes,
    names: Sequence[str],
    results: SparkResults,
    save: partial[None],
) -> None:
    server = HeadwaterServer(directory / "broker")
    try:
        server.start()
        run = Run(server, spark, java_pid(spark), directory, sizes, results, save)
        for name in names:
            MEASUREMENTS[name](run)
    finally:
        server.kill()


def _write(output: Path, results: SparkResults, about: dict[str, str]) -> None:
    (output / "spark.md").write_text(as_markdown(results, about))
    (output / "spark.json").write_text(json.dumps(as_json(results, about), indent=2) + "\n")
    draw(results, output / "spark.png")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench-spark", description="Measure our connector beside Spark's own for Kafka."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="five minutes instead of twenty")
    size.add_argument("--tiny", action="store_true", help="seconds; figures mean nothing")
    parser.add_argument(
        "--only", action="append", choices=tuple(MEASUREMENTS), help="only this, may be repeated"
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
    options.only = options.only or list(MEASUREMENTS)
    return options


if __name__ == "__main__":
    sys.exit(main())
