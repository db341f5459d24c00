"""The progress of real queries appears as the offsets of groups, and never hurts a query."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater import Admin, Producer, TopicPartition, errors
from headwater.client.admin import require_all
from headwater.pipeline import LagReporter, report_lag
from headwater.pipeline.lag.finished_batch import FinishedBatch, SourceReport
from headwater.testing.running_broker import RunningBroker


@pytest.fixture
def reporter(spark: SparkSession) -> Iterator[LagReporter]:
    reporter = report_lag(spark)
    yield reporter
    reporter.close()


def _fill(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(topic, str(number).encode(), partition=number % 2)


def _committed(bootstrap: str, group: str) -> dict[TopicPartition, tuple[int, str]]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        found = require_all(admin.list_group_offsets([group]))[group]
    return {partition: (at.offset, at.metadata) for partition, at in found.items()}


def test_every_finished_batch_is_committed_also_the_last(
    spark: SparkSession,
    reporter: LagReporter,
    headwater_broker: RunningBroker,
    tmp_path: Path,
) -> None:
    bootstrap = headwater_broker.bootstrap
    first, second = (headwater_broker.create_topic(partitions=2) for _ in range(2))

    def start(name: str, **options: str) -> StreamingQuery:
        reader = spark.readStream.format("headwater").option("kafka.bootstrap.servers", bootstrap)
        streams = [
            reader.options(subscribe=topic, startingOffsets="earliest", **options).load()
            for topic in (first, second)
        ]
        writer = streams[0].union(streams[1]).writeStream.format("noop").queryName(name)
        return (
            writer.option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )

    def expected(name: str, count: int, batch_id: int) -> dict[TopicPartition, tuple[int, str]]:
        note = f"Spark query {name}, batch {batch_id}"
        return {
            TopicPartition(topic, partition): (count // 2, note)
            for topic in (first, second)
            for partition in range(2)
        }

    for topic in (first, second):
        _fill(bootstrap, topic, 20)
    queries = [start("grouped", **{"headwater.group": "billing"}), start("named")]
    for query in queries:
        query.awaitTermination()
    assert reporter.flush()
    assert _committed(bootstrap, "billing") == expected("grouped", 20, 0)
    assert _committed(bootstrap, "spark-named") == expected("named", 20, 0)

    for topic in (first, second):
        _fill(bootstrap, topic, 4)
    start("named").awaitTermination()
    reporter.close()
    assert _committed(bootstrap, "spark-named") == expected("named", 24, 1)
    assert _committed(bootstrap, "billing") == expected("grouped", 20, 0)


def _batch(bootstrap: str, topic: str, offset: int, group: str = "watchers") -> FinishedBatch:
    at = {topic: {"0": offset}, "@headwater": {"bootstrap": bootstrap, "group": group}}
    return FinishedBatch("id", None, offset, [SourceReport("headwater", json.dumps(at))])


def _without_spark(**settings: Any) -> LagReporter:
    return LagReporter(cast(SparkSession, None), settings)


def test_a_cluster_that_is_away_costs_one_line_and_gets_the_newest_offsets_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    reporter = _without_spark()
    with caplog.at_level(logging.WARNING, "headwater.pipeline.lag"):
        for offset in (1, 2, 3):
            reporter.add(_batch(f"127.0.0.1:{port}", "orders", offset))
            assert not reporter.flush(timeout_s=0.3)
    assert len(caplog.messages) == 1
    assert "group 'watchers'" in caplog.messages[0]

    with RunningBroker(port=port) as broker:
        broker.create_topic("orders")
        assert reporter.flush()
        committed = _committed(broker.bootstrap, "watchers")
        reporter.close()
    assert committed == {TopicPartition("orders", 0): (3, "Spark query id, batch 3")}


def test_a_topic_that_is_gone_is_given_up_with_one_line(
    headwater_broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = _without_spark()
    with caplog.at_level(logging.WARNING, "headwater.pipeline.lag"):
        for offset in (1, 2):
            reporter.add(_batch(headwater_broker.bootstrap, "no-such-topic", offset))
            assert reporter.flush()
    reporter.close()
    assert len(caplog.messages) == 1


def test_a_setting_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(errors.InvalidConfigError, match="did you mean request_timeout_ms"):
        _without_spark(reqest_timeout_ms=5)
