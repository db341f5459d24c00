"""Writing with a real Spark: rows of all kinds, batch and stream, at least and exactly once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from headwater.base.ids import TopicPartition
from headwater.client.admin import Admin
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.partitioner import partition_for_key
from headwater.client.producer.producer import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.exactly_once_copy import CopyJob, start_copy
from tests.support.values.whole_topic import create_topic, read_topic

EXACTLY_ONCE = {"headwater.exactlyOnce": "true"}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as broker:
        yield broker


def new_topic(broker: RunningBroker, partition_count: int = 2) -> str:
    return create_topic(broker.bootstrap, f"t-{uuid.uuid4()}", partition_count)


def writer(frame: DataFrame, broker: RunningBroker, **options: str) -> DataFrameWriter:
    writer = frame.write.format("headwater").mode("append")
    return writer.option("kafka.bootstrap.servers", broker.bootstrap).options(**options)


def values(broker: RunningBroker, topic: str) -> list[bytes]:
    return sorted(
        value for found in read_topic(broker.bootstrap, topic).values() for value in found
    )


def records(broker: RunningBroker, topic: str, count: int) -> list[ConsumerRecord]:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(2)])
        found: list[ConsumerRecord] = []
        while len(found) < count:
            found += consumer.poll(1.0)
    return found


def open_count(broker: RunningBroker) -> int:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        return len(admin.open_transactions(r"headwater-spark\..*"))


def message_of(action: Any) -> str:
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


def test_all_columns(spark: SparkSession, broker: RunningBroker) -> None:
    first, second = new_topic(broker), new_topic(broker)
    frame = spark.sql(
        f"""
        SELECT IF(id % 2 = 0, '{first}', '{second}') AS topic,
               IF(id < 4, CAST(id AS STRING), NULL) AS key,
               CAST(CONCAT('value ', id) AS BINARY) AS value,
               IF(id < 6, 1, NULL) AS partition,
               ARRAY(NAMED_STRUCT('key', 'n', 'value', CAST(CAST(id AS STRING) AS BINARY)))
                   AS headers,
               TIMESTAMP_MILLIS(1700000000000 + id) AS timestamp
        FROM RANGE(0, 20, 1, 2)
        """
    )
    writer(frame, broker, **{"kafka.compression.type": "lz4"}).save()
    found = {
        int((record.value or b"").split()[1]): record
        for record in [*records(broker, first, 10), *records(broker, second, 10)]
    }
    assert sorted(found) == list(range(20))
    for number, record in found.items():
        assert record.topic == (second if number % 2 else first)
        assert record.key == (str(number).encode() if number < 4 else None)
        assert record.headers == (("n", str(number).encode()),)
        assert record.timestamp == 1700000000000 + number
        assert record.partition == 1 or number >= 6


def test_keys_go_where_other_clients_put_them(spark: SparkSession, broker: RunningBroker) -> None:
    topic = new_topic(broker)
    frame = spark.range(0, 50, 1, 2).selectExpr("CAST(id AS STRING) key", "'x' AS value")
    writer(frame, broker, topic=topic).save()
    for record in records(broker, topic, 50):
        assert record.key is not None
        assert record.partition == partition_for_key(record.key, 2)


def test_what_is_wrong_is_told_in_a_sentence(spark: SparkSession, broker: RunningBroker) -> None:
    frame = spark.sql("SELECT 'v' AS value")
    topic = new_topic(broker)
    assert "Nothing says which topic" in message_of(writer(frame, broker).save)
    assert "did you mean 'topic'?" in message_of(writer(frame, broker, topik="t").save)
    wide = frame.selectExpr("value", "1 AS price")
    assert "'price' cannot be written" in message_of(writer(wide, broker, topic=topic).save)
    nowhere = frame.selectExpr("value", "CAST(NULL AS STRING) AS topic")
    assert "null in the column 'topic'" in message_of(writer(nowhere, broker).save)
    missing = writer(frame, broker, topic="no-such-topic", **{"kafka.max.block.ms": "500"})
    assert "'no-such-topic' cannot be written to: it does not exist" in message_of(missing.save)
    large = frame.selectExpr("REPEAT(value, 2000000) AS value")
    assert "larger than max.request.size" in message_of(writer(large, broker, topic=topic).save)
    far = frame.selectExpr("value", "7 AS partition")
    assert "it has partitions 0 to 1" in message_of(writer(far, broker, topic=topic).save)


@pytest.mark.parametrize("once", [{}, EXACTLY_ONCE], ids=["at least once", "exactly once"])
def test_rows_that_cannot_be_written_become_dead_letters(
    spark: SparkSession, broker: RunningBroker, once: dict[str, str], tmp_path: Path
) -> None:
    source, target, letters = (new_topic(broker) for _ in range(3))
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(6):
            producer.send(source, b"%d" % number, b"k", headers={"n": b"%d" % number})
    reader = spark.readStream.format("headwater").option("subscribe", source)
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap)
    rows = reader.options(startingOffsets="earliest", includeHeaders="true").load()
    query = (
        rows.selectExpr(
            "key",
            "value",
            "headers",
            f"IF(CAST(value AS STRING) = '2', NULL, '{target}') AS topic",
            "IF(CAST(value AS STRING) = '4', 9, NULL) AS partition",
        )
        .writeStream.format("headwater")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("errors.tolerance", "all")
        .option("errors.deadletterqueue.topic.name", letters)
        .options(**once)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert values(broker, target) == [b"0", b"1", b"3", b"5"]
    found = sorted(records(broker, letters, 2), key=lambda record: record.value or b"")
    assert [record.value for record in found] == [b"2", b"4"]
    for record, error in zip(found, ["null in the column 'topic'", "no partition 9"], strict=True):
        headers = dict(record.headers)
        assert (headers["n"], record.key) == (record.value, b"k")
        assert error in (headers["headwater-error"] or b"").decode()
        assert headers["headwater-query"] == str(query.id).encode()
        assert headers["headwater-batch"] == b"0"
        assert headers["__dlq.errors.group"] == letters.encode()
    assert dict(found[1].headers)["headwater-wanted-topic"] == target.encode()
    assert open_count(broker) == 0


def test_a_batch_write_that_is_repeated(spark: SparkSession, broker: RunningBroker) -> None:
    topic = new_topic(broker)
    frame = spark.range(0, 6, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    named = {**EXACTLY_ONCE, "headwater.writeId": "daily (2026-11-16)"}
    for _ in range(2):
        writer(frame, broker, topic=topic, **named).save()
    assert values(broker, topic) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    writer(frame.limit(1), broker, topic=topic, **EXACTLY_ONCE).save()
    assert len(values(broker, topic)) == 7
    assert open_count(broker) == 0


def test_a_stream_whose_last_batch_comes_again(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    source, target = new_topic(broker), new_topic(broker)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(30):
            producer.send(source, b"%d" % number, partition=number % 2)
    job = CopyJob(broker.bootstrap, source, target, str(tmp_path), rows_per_batch=20)
    start_copy(spark, job).awaitTermination()
    expected = sorted(b"%d" % number for number in range(30))
    assert values(broker, target) == expected
    # As if the driver had died between the sink's commit and Spark's own note of it.
    for note in (tmp_path / "commits" / "1", tmp_path / "commits" / ".1.crc"):
        note.unlink()
    again = start_copy(spark, job)
    again.awaitTermination()
    assert [progress["batchId"] for progress in again.recentProgress][:1] == [1]
    assert values(broker, target) == expected
    assert open_count(broker) == 0
