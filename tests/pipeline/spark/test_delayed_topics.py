"""Topics in which messages wait, read by our connector and by Spark's own: gaps and due times."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headwater import Consumer, Producer, TopicPartition
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.source_reading import BatchLog, start, until
from tests.support.waiting import eventually

PARTITIONS = 2
#: Of each kind and partition: at once, soon, in an hour.
COUNT = 30

FORMATS = ["headwater", pytest.param("kafka", marks=pytest.mark.kafka)]


class Sent(NamedTuple):
    topic: str
    visible_count: int
    #: Per partition, where readers find the end once all is delivered that is due soon.
    ends: list[int]


@pytest.fixture
def session(request: pytest.FixtureRequest, format_name: str) -> SparkSession:
    name = "spark_with_kafka" if format_name == "kafka" else "spark"
    found: SparkSession = request.getfixturevalue(name)
    return found


def _send(broker: RunningBroker, topic: str, delay: str | None, name: str) -> None:
    headers = () if delay is None else (("headwater-delay", delay.encode()),)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for partition in range(PARTITIONS):
            for number in range(COUNT):
                value = f"{name} {partition} {number}".encode()
                producer.send(topic, value, partition=partition, headers=headers)
        producer.flush()


def _ends(broker: RunningBroker, topic: str) -> list[int]:
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        found = consumer.end_offsets(places)
    return [found[place] for place in places]


@pytest.fixture
def sent(headwater_broker: RunningBroker) -> Sent:
    """Gaps in front, in the midst and at the end, and no more deliveries for an hour."""
    topic = headwater_broker.create_topic(partitions=PARTITIONS, configs={"delay.mode": "header"})
    _send(headwater_broker, topic, "1h", "late")
    _send(headwater_broker, topic, None, "at once")
    _send(headwater_broker, topic, "200ms", "soon")
    _send(headwater_broker, topic, "1h", "later")
    # Wraps of all four, and copies of one.
    end = 5 * COUNT
    eventually(lambda: _ends(headwater_broker, topic) == [end] * PARTITIONS)
    return Sent(topic, 2 * COUNT * PARTITIONS, [end] * PARTITIONS)


def _options(broker: RunningBroker, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


def _latest_event_ms(query: StreamingQuery) -> int:
    """What the watermark is reckoned from."""
    told = [each.eventTime.get("max") for each in query.recentProgress]
    times = [datetime.fromisoformat(each) for each in told if each is not None]
    return max((round(each.timestamp() * 1000) for each in times), default=-1)


def _values(frame: DataFrame) -> list[str]:
    return sorted(row.value for row in frame.selectExpr("CAST(value AS STRING) value").collect())


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_batch_query_ends(
    session: SparkSession, format_name: str, headwater_broker: RunningBroker, sent: Sent
) -> None:
    options = _options(headwater_broker, sent.topic)
    frame = session.read.format(format_name).options(**options, endingOffsets="latest").load()
    assert _values(frame) == sorted(
        f"{name} {partition} {number}"
        for name in ("at once", "soon")
        for partition in range(PARTITIONS)
        for number in range(COUNT)
    )


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_stream_comes_to_the_end_and_goes_on(
    session: SparkSession,
    format_name: str,
    headwater_broker: RunningBroker,
    sent: Sent,
    tmp_path: Path,
) -> None:
    """Every record once, through gaps, and the watermark follows the due times."""
    options = _options(headwater_broker, sent.topic)
    frame = session.readStream.format(format_name).options(**options).load()
    marked = frame.withWatermark("timestamp", "1 hour").select(
        F.col("value").cast("string").alias("value"), "timestamp", "offset", "partition"
    )
    log = BatchLog()
    query = start(marked, tmp_path, log)
    try:
        until(query, lambda: len(log.rows) >= sent.visible_count)
        _send(headwater_broker, sent.topic, "300ms", "while it runs")
        total = sent.visible_count + COUNT * PARTITIONS
        until(query, lambda: len(log.rows) >= total)
        latest_ms = max(int(row.timestamp.timestamp() * 1000) for row in log.rows)
        until(query, lambda: _latest_event_ms(query) == latest_ms)
    finally:
        query.stop()
    values = [row.value for row in log.rows]
    assert len(values) == len(set(values)) == total
    assert not [value for value in values if value.startswith("late")]
    now = datetime.now(UTC).replace(tzinfo=None)
    assert max(row.timestamp.replace(tzinfo=None) for row in log.rows) <= now
