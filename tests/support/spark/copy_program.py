"""A program that copies a topic with Spark, run by tests against any master.

    python copy_program.py MASTER BOOTSTRAP ORIGIN TARGET DIRECTORY

It prints a line after each step, and waits for a line on standard input after the first, so that
whoever runs it can do harm in between.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.pipeline.spark.session import start_session

EXECUTOR_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
#: One on each worker of the tests' cluster.
EXECUTOR_COUNT = 2
PATIENCE_S = 60.0


def main(master: str, bootstrap: str, origin: str, target: str, directory: Path) -> None:
    spark = start_session("copy", master=master, configs=EXECUTOR_SETTINGS)
    tell(f"executors {await_executors(spark)}")
    sys.stdin.readline()
    tell(f"read {count(spark, bootstrap, origin)}")
    copy(spark, bootstrap, origin, target, directory)
    tell(f"copied {count(spark, bootstrap, target)}")
    spark.stop()


def await_executors(spark: SparkSession) -> int:
    """How many there are, once all that the cluster has have come, or the time is over."""
    context = spark.sparkContext._jsc.sc()
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        # The driver counts as one of them.
        executor_count = int(context.getExecutorMemoryStatus().size()) - 1
        if executor_count >= EXECUTOR_COUNT or time.monotonic() > deadline_s:
            return executor_count
        time.sleep(0.1)


def count(spark: SparkSession, bootstrap: str, topic: str) -> int:
    """How many different values a topic has, if each is there once."""
    reader = spark.read.format("headwater").option("kafka.bootstrap.servers", bootstrap)
    values = reader.option("subscribe", topic).load().select("value")
    all_count, distinct_count = values.count(), values.distinct().count()
    return distinct_count if all_count == distinct_count else -all_count


def copy(spark: SparkSession, bootstrap: str, origin: str, target: str, directory: Path) -> None:
    reader = spark.readStream.format("headwater").option("kafka.bootstrap.servers", bootstrap)
    stream = (
        reader.option("subscribe", origin)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "2000")
        .load()
    )
    query = (
        stream.select("key", "value")
        .writeStream.format("headwater")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("headwater.exactlyOnce", "true")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
