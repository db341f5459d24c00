"""Topics to read with Spark, and queries over them that run to their end.

Brokers run in the test's process; Spark and its workers reach them through their ports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater import Producer, TopicPartition
from headwater.testing.running_broker import RunningBroker

#: The time of the record with offset 0, and how far apart others are.
FIRST_MS = 1_700_000_000_000
STEP_MS = 1000

#: A query that has not come so far by then never does, even on a machine with much else to do.
WAIT_S = 180

#: What a test looks at of a record: topic, partition and offset.
Place = tuple[str, int, int]


def send(
    broker: RunningBroker, topic: str, partition: int, count: int, *, first: int = 0
) -> list[Place]:
    """Write so many records, whose values are their numbers."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        futures = [
            producer.send(
                topic,
                b"%d" % number,
                partition=partition,
                timestamp_ms=FIRST_MS + number * STEP_MS,
            )
            for number in range(first, first + count)
        ]
        producer.flush()
    return [(topic, partition, future.result(timeout_s=30).offset) for future in futures]


def reading(spark: SparkSession, broker: RunningBroker, **options: object) -> DataFrame:
    """A batch read; underscores stand for dots in the names of options."""
    return spark.read.format("headwater").options(**_options(broker, options)).load()


def streaming(spark: SparkSession, broker: RunningBroker, **options: object) -> DataFrame:
    return spark.readStream.format("headwater").options(**_options(broker, options)).load()


def _options(broker: RunningBroker, options: dict[str, object]) -> dict[str, str]:
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    return {"kafka.bootstrap.servers": broker.bootstrap, **given}


def places(rows: Iterable[Row]) -> list[Place]:
    return sorted((row.topic, row.partition, row.offset) for row in rows)


def span(topic: str, partition: int, start: int, end: int) -> list[Place]:
    return [(topic, partition, offset) for offset in range(start, end)]


def at(partitions: dict[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets in the form of the options."""
    shown: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in partitions.items():
        shown.setdefault(topic, {})[str(partition)] = offset
    return shown


@dataclass
class BatchLog:
    """What the micro-batches of a query brought; of a batch that is done again, the last time."""

    batches: dict[int, list[Row]] = field(default_factory=dict)

    def add(self, frame: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = frame.collect()

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches.values() for row in batch]

    @property
    def places(self) -> list[Place]:
        return places(self.rows)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for _, batch in sorted(self.batches.items())]


def start(frame: DataFrame, checkpoint: Path, log: BatchLog, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(log.add).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def run_available(frame: DataFrame, checkpoint: Path) -> BatchLog:
    """Run until all that was there is read."""
    log = BatchLog()
    query = start(frame, checkpoint, log, availableNow=True)
    query.awaitTermination()
    return log


def until(query: StreamingQuery, look: Callable[[], bool]) -> None:
    """Wait until the running query has done what `look` sees."""
    deadline = time.monotonic() + WAIT_S
    while not look():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.05)


def failure_of(query: StreamingQuery) -> str:
    """What a query that fails says."""
    try:
        query.awaitTermination(WAIT_S)
    except PySparkException as error:
        return str(error)
    raise AssertionError("the query has not failed")
