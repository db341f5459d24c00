"""Batch queries of a real Spark: from where to where, which rows, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import reduce

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from headwater import Admin, Producer, TopicPartition
from headwater.client.admin import CommittedOffset, require_all
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.source_reading import (
    FIRST_MS,
    STEP_MS,
    Place,
    at,
    places,
    reading,
    send,
    span,
)

ALL = 30


def union(frames: dict[str, DataFrame]) -> dict[str, list[Place]]:
    """The places that each frame reads, by one query of Spark for all of them."""
    marked = [
        frame.select("topic", "partition", "offset").withColumn("name", lit(name))
        for name, frame in frames.items()
    ]
    rows = reduce(DataFrame.unionAll, marked).collect()
    return {name: places(row for row in rows if row.name == name) for name in frames}


def test_positions(spark: SparkSession, broker: RunningBroker) -> None:
    topic = broker.create_topic("positions", partitions=2)
    for partition in range(2):
        send(broker, topic, partition, ALL)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.alter_group_offsets("readers", {one: CommittedOffset(25)}))
    both = span(topic, 0, 0, ALL) + span(topic, 1, 0, ALL)
    time_of_20 = FIRST_MS + 20 * STEP_MS

    def read(**options: object) -> DataFrame:
        return reading(spark, broker, **options)

    # Every case takes Spark half a second, so one shows several things.
    cases: dict[str, tuple[DataFrame, list[Place]]] = {
        "all, in pieces": (read(subscribe=topic, minPartitions=7, maxRecordsPerPartition=9), both),
        "assigned, between offsets": (
            read(
                assign=json.dumps({topic: [1, 0]}),
                startingOffsets=json.dumps(at({zero: -2, one: 10})),
                endingOffsets=json.dumps(at({zero: 7, one: -1})),
            ),
            span(topic, 0, 0, 7) + span(topic, 1, 10, ALL),
        ),
        "a pattern, between times": (
            read(
                subscribePattern="posit.*",
                startingTimestamp=time_of_20 - 1,
                endingTimestamp=time_of_20 + 5 * STEP_MS,
            ),
            span(topic, 0, 20, 25) + span(topic, 1, 20, 25),
        ),
        "times of partitions": (
            read(
                subscribe=topic,
                startingOffsetsByTimestamp=json.dumps(at({zero: FIRST_MS, one: time_of_20})),
                endingOffsetsByTimestamp=json.dumps(at({zero: FIRST_MS + 1, one: 2 * FIRST_MS})),
            ),
            span(topic, 0, 0, 1) + span(topic, 1, 20, ALL),
        ),
        "a group": (
            read(subscribe=topic, startingOffsets="group", headwater__group="readers"),
            span(topic, 0, 0, ALL) + span(topic, 1, 25, ALL),
        ),
    }
    found = union({name: frame for name, (frame, _) in cases.items()})
    for name, (_, expected) in cases.items():
        assert found[name] == expected, name
    assert cases["all, in pieces"][0].rdd.getNumPartitions() == 8


def test_rows(spark: SparkSession, broker: RunningBroker) -> None:
    topic = broker.create_topic("rows")
    appended = broker.create_topic(
        "rows-appended", configs={"message.timestamp.type": "LogAppendTime"}
    )
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        headers = [("a", b"1"), ("b", None), ("a", b"")]
        producer.send(topic, b"v", key=b"k", timestamp_ms=FIRST_MS + 7, headers=headers)
        producer.send(topic, None, key=b"deleted", timestamp_ms=FIRST_MS)
        producer.send(topic, b"", timestamp_ms=FIRST_MS)
        producer.send(appended, b"late", timestamp_ms=FIRST_MS)
    frame = reading(spark, broker, subscribePattern="rows.*", includeHeaders="true")
    rows = {(row.topic, row.offset): row for row in frame.collect()}
    first = rows[topic, 0]
    assert (first.key, first.value, first.partition, first.timestampType) == (b"k", b"v", 0, 0)
    assert first.timestamp.astimezone(UTC) == datetime.fromtimestamp(FIRST_MS / 1000, UTC).replace(
        microsecond=7000
    )
    assert [tuple(header) for header in first.headers] == headers
    deleted, empty, late = rows[topic, 1], rows[topic, 2], rows[appended, 0]
    assert (deleted.key, deleted.value, deleted.headers) == (b"deleted", None, None)
    assert (empty.key, empty.value) == (None, b"")
    assert late.timestampType == 1
    assert late.timestamp > first.timestamp

    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    pruned = spark.read.format("headwater").options(**options)
    frame = pruned.schema("offset BIGINT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>").load()
    assert frame.columns == ["offset", "headers"]
    assert [row.headers is None for row in frame.sort("offset").collect()] == [False, True, True]
    narrow = reading(spark, broker, subscribe=topic, headwater__columns="value")
    assert {row.value for row in narrow.collect()} == {b"", None, b"v"}
    nothing = reading(spark, broker, subscribe=broker.create_topic("nothing"))
    assert nothing.collect() == []


def problem(spark: SparkSession, broker: RunningBroker, **options: object) -> str:
    with pytest.raises(PySparkException) as caught:
        reading(spark, broker, **options).collect()
    return str(caught.value)


def test_what_is_refused(spark: SparkSession, broker: RunningBroker) -> None:
    with pytest.raises(PySparkException, match="did you mean 'startingOffsets'"):
        reading(spark, broker, subscribe="a", startingOffset="earliest")
    assert "There is no topic 'missing'." in problem(spark, broker, subscribe="missing")
    assert "says what to read, but none is given" in problem(spark, broker)
    with pytest.raises(PySparkException, match="did you mean 'offset'"):
        reader = spark.read.format("headwater").schema("offest BIGINT")
        reader.option("kafka.bootstrap.servers", broker.bootstrap).load().collect()


def test_records_that_are_gone(spark: SparkSession, broker: RunningBroker) -> None:
    topic = broker.create_topic("gone")
    place = TopicPartition(topic, 0)
    send(broker, topic, 0, ALL)
    planned = reading(spark, broker, subscribe=topic, failOnDataLoss="false")
    fatal = reading(spark, broker, subscribe=topic)
    # The ranges are fixed here, before the records go.
    assert planned.rdd.getNumPartitions() == fatal.rdd.getNumPartitions() == 1
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.delete_records({place: 12}))
    assert places(planned.collect()) == span(topic, 0, 12, ALL)
    with pytest.raises(PySparkException) as caught:
        fatal.rdd.count()
    assert "offset 0 was to be next, and the first one there is 12" in str(caught.value)
    options = {"subscribe": topic, "startingOffsets": json.dumps(at({place: 5}))}
    assert "offset 5 was to be next" in problem(spark, broker, **options)
    lenient = reading(spark, broker, failOnDataLoss="false", **options)
    assert places(lenient.collect()) == span(topic, 0, 12, ALL)
