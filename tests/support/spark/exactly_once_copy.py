"""A Spark application that copies topics exactly once, in a process of its own that may be killed.

Run as `python -m tests.support.spark.exactly_once_copy [MASTER]`, it takes jobs from its standard
input, each a line with a JSON object of `CopyJob`'s fields, does one after the other, and answers
each with a line: `done`, or `failed` and why. A job copies what there is; done again, it goes on
where it was.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.pipeline.sink.exactly_once.halt_points import VARIABLE
from headwater.pipeline.spark.session import start_session
from tests.support.spark.session import SETTINGS

#: Several attempts of a task, which Spark makes in local mode only if told so.
MASTER = "local[2,4]"


@dataclass(frozen=True)
class CopyJob:
    bootstrap: str
    source: str
    target: str
    checkpoint: str
    rows_per_batch: int

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def start_copy(spark: SparkSession, job: CopyJob) -> StreamingQuery:
    rows = (
        spark.readStream.format("headwater")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("subscribe", job.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(job.rows_per_batch))
        .load()
    )
    return (
        rows.select("key", "value")
        .writeStream.format("headwater")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("topic", job.target)
        .option("headwater.exactlyOnce", "true")
        .option("checkpointLocation", job.checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def main() -> None:
    master = sys.argv[1] if len(sys.argv) > 1 else MASTER
    # Executors of a cluster do not have the driver's environment.
    halting = {f"spark.executorEnv.{VARIABLE}": os.environ.get(VARIABLE, "")}
    executors = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
    configs = {**SETTINGS, **executors, **halting}
    spark = start_session("headwater-copy", master=master, configs=configs)
    for line in sys.stdin:
        try:
            start_copy(spark, CopyJob(**json.loads(line))).awaitTermination()
        except StreamingQueryException as error:
            print("failed:", " ".join(str(error).split()), flush=True)
        else:
            print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
