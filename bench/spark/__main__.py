"""`make bench-spark`: measures our connector beside Spark's own on one broker and one Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bench_command import BenchParser, BenchReport, made_directories, run_bench
from bench.broker.chart import draw
from bench.broker.servers import HeadwaterServer
from bench.facts import machine_fact
from bench.spark import latency, reading, writing
from bench.spark.report import as_json, as_markdown, facts
from bench.spark.run import Run, SparkResults
from bench.spark.sides import HEADWATER, MASTER, OFFICIAL
from bench.spark.sizes import FULL, QUICK, TINY
from headwater.java.installation import ProgramUnavailableError
from headwater.pipeline.spark.errors import SparkUnavailableError
from headwater.pipeline.spark.session import start_session
from headwater.testing.spark_connector import resolve_connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEASUREMENTS = {
    "reading": reading.measure,
    "writing": writing.measure,
    "latency": latency.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    directory, output = made_directories(options)
    machine = machine_fact(str(directory))  # Before Spark gives it work.
    try:
        spark = start_spark()
    except (ProgramUnavailableError, SparkUnavailableError) as unavailable:
        print(unavailable, file=sys.stderr)
        return 1
    results = SparkResults(
        f'format("{HEADWATER.format_name}")', f'format("{OFFICIAL.format_name}")'
    )
    about = facts(machine, java_version(spark))
    report = BenchReport("spark", output, results, about, as_markdown, as_json, draw)

    def measure(scratch: Path) -> None:
        server = HeadwaterServer(scratch / "broker")
        try:
            server.start()
            pid = java_pid(spark)
            run = Run(results, server, spark, pid, scratch, options.sizes, report.save)
            for name in options.only or MEASUREMENTS:
                MEASUREMENTS[name](run)
        finally:
            server.kill()

    try:
        return run_bench(report, directory, measure)
    finally:
        spark.stop()


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


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="bench-spark", description="Measure our connector beside Spark's own for Kafka."
    )
    parser.add_sizes(FULL, QUICK, TINY, times=("five minutes instead of twenty", "seconds"))
    parser.add_argument(
        "--only", action="append", choices=tuple(MEASUREMENTS), help="only this, may be repeated"
    )
    parser.add_directories("the broker's data")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
