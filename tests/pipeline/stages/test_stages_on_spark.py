"""A real Spark whose source and sink are stages: a batch that is run twice counts once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.command import run_command
from tests.support.waiting import eventually

COUNT = 3_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"audit.bucket.ms": "1000"}) as running:
        yield running


def stages(broker: RunningBroker, topic: str) -> dict[tuple[str, str], int]:
    return {(each["tier"], each["stage"]): each["count"] for each in told(broker, topic)["stages"]}


def told(broker: RunningBroker, topic: str) -> dict[str, Any]:
    done = run_command("audit", "topic", topic, "--json", "-b", broker.bootstrap)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fill(broker: RunningBroker, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(COUNT):
            producer.send(topic, b"%d" % number, partition=number % 2)


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_a_stream_whose_batch_is_run_twice(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path, is_exactly_once: bool
) -> None:
    source, target = broker.create_topic(partitions=2), broker.create_topic(partitions=2)
    fill(broker, source)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "headwater.audit.stage": "copy"}
    frame = (
        spark.readStream.format("headwater")
        .options(**options, subscribe=source, startingOffsets="earliest", minPartitions="4")
        .load()
    )

    def run() -> None:
        query = (
            frame.select("key", "value")
            .writeStream.format("headwater")
            .options(**options, topic=target, checkpointLocation=str(tmp_path))
            .option("headwater.exactlyOnce", str(is_exactly_once).lower())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    expected = {("source", "copy"): COUNT}, {("sink", "copy"): COUNT}
    assert (stages(broker, source), stages(broker, target)) == expected
    # As after a crash at the last moment: the batch is planned and written, and not marked as done.
    for mark in (tmp_path / "commits").glob("*0*"):
        mark.unlink()
    time.sleep(1.1)  # What is written again is of another bucket of time.
    run()
    assert (stages(broker, source), stages(broker, target)) == expected
    stored = COUNT if is_exactly_once else 2 * COUNT
    # The commit marks of transactions are no records.
    eventually(lambda: told(broker, target)["count"] == stored)


def test_a_batch_that_failed_counts_once_and_so_does_a_batch_job(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    """It fails behind the source, and is read again; the job reads and writes the same topics."""
    source, target = broker.create_topic(partitions=2), broker.create_topic(partitions=2)
    fill(broker, source)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "headwater.audit.stage": "copy"}
    frame = (
        spark.readStream.format("headwater")
        .options(**options, subscribe=source, startingOffsets="earliest")
        .load()
    )
    attempts: list[int] = []

    def handle(batch: Any, number: int) -> None:
        attempts.append(batch.count())
        if len(attempts) == 1:
            raise ValueError("not this time")

    for is_first in (True, False):
        query = (
            frame.writeStream.foreachBatch(handle)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        if is_first:
            with pytest.raises(PySparkException):
                query.awaitTermination()
        else:
            query.awaitTermination()
    assert attempts == [COUNT, COUNT]
    assert stages(broker, source) == {("source", "copy"): COUNT}
    named = {**options, "headwater.audit.stage": "daily"}
    reading = spark.read.format("headwater").options(**named, subscribe=source).load()
    writing = reading.select("value").write.format("headwater").mode("append")
    writing.options(**named, topic=target).save()
    assert stages(broker, source) == {("source", "copy"): COUNT, ("source", "daily"): COUNT}
    assert stages(broker, target) == {("sink", "daily"): COUNT}
