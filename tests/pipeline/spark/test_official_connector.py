"""Spark's own connector for Kafka works with Headwater as it works with Kafka, both ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Producer
from headwater.testing.running_broker import RunningBroker

pytestmark = pytest.mark.kafka

ROW_COUNT = 2000


def _frame(spark: SparkSession, count: int = ROW_COUNT) -> DataFrame:
    """Keys, values, headers; every tenth record is without headers."""
    header = F.struct(
        F.lit("source").alias("key"), F.col("id").cast("string").cast("binary").alias("value")
    )
    return spark.range(count).select(
        F.concat(F.lit("key-"), F.col("id") % 7).alias("key"),
        F.col("id").cast("string").alias("value"),
        F.when(F.col("id") % 10 != 0, F.array(header)).alias("headers"),
    )


def _numbers(frame: DataFrame) -> list[int]:
    rows = frame.selectExpr("CAST(CAST(value AS STRING) AS INT) AS number").collect()
    return sorted(row.number for row in rows)


def _read(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def _write(frame: DataFrame, bootstrap: str, topic: str, **options: str) -> None:
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", topic).options(**options).save()


def test_batches_are_written_and_read_with_keys_headers_and_places(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker
) -> None:
    spark, bootstrap = spark_with_kafka, headwater_broker.bootstrap
    topic = headwater_broker.create_topic(partitions=3)
    _write(_frame(spark), bootstrap, topic, includeHeaders="true")

    found = _read(spark, bootstrap, topic, includeHeaders="true").collect()
    assert sorted(int(row.value) for row in found) == list(range(ROW_COUNT))
    for row in found:
        number = int(row.value)
        assert bytes(row.key) == f"key-{number % 7}".encode()
        headers = [(header.key, bytes(header.value)) for header in row.headers or ()]
        assert headers == ([("source", bytes(row.value))] if number % 10 else [])
        assert (row.topic, row.timestampType) == (topic, 0)
    partition_by_key = {bytes(row.key): row.partition for row in found}
    assert all(partition_by_key[bytes(row.key)] == row.partition for row in found)
    for partition in range(3):
        offsets = [row.offset for row in found if row.partition == partition]
        assert sorted(offsets) == list(range(len(offsets)))


@pytest.mark.full
def test_ranges_are_read_from_offsets_and_times(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker
) -> None:
    spark, bootstrap = spark_with_kafka, headwater_broker.bootstrap
    topic = headwater_broker.create_topic(partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            value = str(number).encode()
            producer.send(topic, value, partition=number % 2, timestamp_ms=1_000 + number)

    def ranged(**options: object) -> list[int]:
        texts = {
            name: value if isinstance(value, str) else json.dumps({topic: value})
            for name, value in options.items()
        }
        return _numbers(_read(spark, bootstrap, topic, **texts))

    # In partition 0 the even numbers, at half their value, and in partition 1 the odd ones.
    assert ranged(startingOffsets={"0": 40, "1": 50}) == list(range(80, 100, 2))
    assert ranged(startingOffsets={"0": -2, "1": 45}, endingOffsets={"0": 3, "1": -1}) == [
        0, 2, 4, *range(91, 100, 2)
    ]  # fmt: skip
    assert ranged(startingTimestamp="1090") == list(range(90, 100))
    assert ranged(endingOffsetsByTimestamp={"0": 1010, "1": 1010}) == list(range(10))
    assert ranged(minPartitions="8") == list(range(100))


def test_streams_are_copied_and_go_on_where_they_stopped(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker, tmp_path: Path
) -> None:
    spark, bootstrap = spark_with_kafka, headwater_broker.bootstrap
    origin = headwater_broker.create_topic(partitions=2)
    target = headwater_broker.create_topic(partitions=2)

    def copy() -> int:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        stream = (
            reader.option("subscribe", origin)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "700")
            .load()
        )
        query = (
            stream.select("key", "value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return len([progress for progress in query.recentProgress if progress.numInputRows])

    _write(_frame(spark).select("key", "value"), bootstrap, origin)
    assert copy() >= 3
    assert _numbers(_read(spark, bootstrap, target)) == list(range(ROW_COUNT))

    more = _frame(spark, ROW_COUNT + 100).where(f"CAST(value AS INT) >= {ROW_COUNT}")
    _write(more.select("key", "value"), bootstrap, origin)
    assert copy() == 1
    assert _numbers(_read(spark, bootstrap, target)) == list(range(ROW_COUNT + 100))


def test_a_query_goes_on_with_our_connector_where_that_of_spark_has_stopped(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker, tmp_path: Path
) -> None:
    topic = headwater_broker.create_topic(partitions=2)
    found: list[int] = []

    def add(frame: DataFrame, batch_id: int) -> None:
        found.extend(_numbers(frame))

    for count, name in ((6, "kafka"), (4, "headwater")):
        with Producer(bootstrap_servers=headwater_broker.bootstrap) as producer:
            for number in range(len(found), len(found) + count):
                producer.send(topic, str(number).encode(), partition=number % 2)
        reader = spark_with_kafka.readStream.format(name)
        stream = (
            reader.option("kafka.bootstrap.servers", headwater_broker.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        writer = stream.writeStream.foreachBatch(add).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert found == list(range(10))


def test_transactions_are_read_only_when_they_are_committed(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker
) -> None:
    spark, bootstrap = spark_with_kafka, headwater_broker.bootstrap
    topic = headwater_broker.create_topic()
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for first in (0, 10, 20):
            producer.begin_transaction()
            for number in range(first, first + 10):
                producer.send(topic, str(number).encode())
            if first == 10:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()

    assert _numbers(_read(spark, bootstrap, topic)) == list(range(30))
    committed = _read(spark, bootstrap, topic, **{"kafka.isolation.level": "read_committed"})
    assert _numbers(committed) == [*range(10), *range(20, 30)]


@pytest.mark.full
def test_a_topic_pattern_finds_topics(
    spark_with_kafka: SparkSession, headwater_broker: RunningBroker
) -> None:
    spark, bootstrap = spark_with_kafka, headwater_broker.bootstrap
    for name, value in (("pattern-a", "1"), ("pattern-b", "2"), ("other-pattern", "3")):
        headwater_broker.create_topic(name)
        frame = spark.createDataFrame([(value,)], "value STRING")
        _write(frame, bootstrap, name)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    assert _numbers(reader.option("subscribePattern", "pattern-.*").load()) == [1, 2]
