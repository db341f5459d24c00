"""Streaming queries of a real Spark: limits, restarts, growth, transactions and losses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater import Admin, Producer, TopicPartition
from headwater.client.admin import CommittedOffset, require_all
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.source_reading import (
    BatchLog,
    failure_of,
    run_available,
    send,
    span,
    start,
    streaming,
    until,
)


def test_a_query_that_grows_over_restarts(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    """Everything is read once: by limited batches, after restarts, from new partitions too."""
    first = broker.create_topic("grow-a", partitions=2)
    expected = send(broker, first, 0, 30) + send(broker, first, 1, 10)
    frame = streaming(
        spark, broker, subscribePattern="grow-.*", startingOffsets="earliest",
        maxOffsetsPerTrigger=15, minOffsetsPerTrigger=15, headwater__group="growers",
    )  # fmt: skip
    log = run_available(frame, tmp_path)
    assert log.places == sorted(expected)
    # In proportion to what there is, and the last one has the rest: it waits for no more.
    assert log.sizes == [15, 15, 10]
    assert len({(row.partition, row.offset) for row in log.batches[0]}) == 15
    assert [sum(row.partition == number for row in log.batches[0]) for number in (0, 1)] == [11, 4]

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.create_partitions({first: 3}))
    second = broker.create_topic("grow-b")
    more = send(broker, first, 0, 2) + send(broker, first, 2, 3) + send(broker, second, 0, 4)
    log = run_available(frame, tmp_path)
    assert log.places == sorted(more)
    assert list(log.batches) == [3], "the batches are numbered on"
    assert run_available(frame, tmp_path).places == []

    stored = (tmp_path / "offsets" / "3").read_text().splitlines()[-1]
    assert json.loads(stored) == {
        "grow-a": {"0": 32, "1": 10, "2": 3},
        "grow-b": {"0": 4},
        "@headwater": {"bootstrap": broker.bootstrap, "group": "growers"},
    }


def test_a_query_that_goes_on(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    """It begins at the end, sees partitions come, and after a crash in its first batch repeats
    just that batch, though the end is elsewhere by then."""
    topic = broker.create_topic("running")
    send(broker, topic, 0, 5)
    frame = streaming(spark, broker, subscribe=topic)
    log = BatchLog()
    query = start(frame, tmp_path, log)
    until(query, lambda: query.lastProgress is not None)
    expected = send(broker, topic, 0, 3)
    until(query, lambda: log.places == expected)
    first = dict(log.batches)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.create_partitions({topic: 2}))
    expected += send(broker, topic, 1, 4)
    until(query, lambda: log.places == expected)

    def latest() -> object:
        progress = query.lastProgress
        assert progress is not None
        return json.loads(progress.sources[0].latestOffset)[topic]

    until(query, lambda: latest() == {"0": 8, "1": 4})
    query.stop()

    for name in ("commits", "offsets"):
        for number in range(20):
            if (number, name) != (0, "offsets"):
                (tmp_path / name / str(number)).unlink(missing_ok=True)
                (tmp_path / name / f".{number}.crc").unlink(missing_ok=True)
    again = run_available(frame, tmp_path)
    assert again.batches[0] == first[0]
    assert again.places == expected


def test_transactions(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    """What is open or aborted is not read, and a tail of control records ends a batch at once."""
    topic = broker.create_topic("transactions")
    frame = streaming(spark, broker, subscribe=topic, startingOffsets="earliest")
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="source") as producer:
        producer.init_transactions()
        for is_committed in (True, False, False):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(topic, b"x")
            producer.flush()
            if is_committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        assert run_available(frame, tmp_path / "a").places == span(topic, 0, 0, 3)
        producer.begin_transaction()
        for _ in range(2):
            producer.send(topic, b"open")
        producer.flush()
        assert run_available(frame, tmp_path / "a").places == []
        everything = streaming(
            spark, broker, subscribe=topic, startingOffsets="earliest",
            kafka__isolation__level="read_uncommitted",
        )  # fmt: skip
        uncommitted = run_available(everything, tmp_path / "b").places
        assert uncommitted == [
            place for place in span(topic, 0, 0, 14) if place[2] not in (3, 7, 11)
        ]
        # Who has read an open transaction and now reads only what is committed has lost nothing.
        assert run_available(frame, tmp_path / "b").places == []
        producer.commit_transaction()
    assert run_available(frame, tmp_path / "a").places == span(topic, 0, 12, 14)
    assert run_available(frame, tmp_path / "b").places == []


@pytest.mark.full
def test_starting_where_a_group_has_committed(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic("committed", partitions=2)
    send(broker, topic, 0, 6)
    expected = send(broker, topic, 1, 2)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        offsets = {TopicPartition(topic, 0): CommittedOffset(4)}
        require_all(admin.alter_group_offsets("movers", offsets))
    frame = streaming(
        spark, broker, subscribe=topic, startingOffsets="group", headwater__group="movers"
    )
    assert run_available(frame, tmp_path).places == span(topic, 0, 4, 6) + expected


@pytest.mark.full
def test_losses(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    """Records that are deleted, and topics that are: an error, or a warning and the rest."""
    kept, aged, deleted = (broker.create_topic(f"loss-{name}") for name in ("a", "b", "c"))
    for topic in (kept, aged, deleted):
        send(broker, topic, 0, 5)

    def query(is_fatal: str) -> BatchLog:
        return run_available(frames[is_fatal], tmp_path / is_fatal)

    frames = {
        is_fatal: streaming(
            spark, broker, subscribePattern="loss-.*", startingOffsets="earliest",
            failOnDataLoss=is_fatal,
        )
        for is_fatal in ("true", "false")
    }  # fmt: skip
    assert len(query("true").rows) == len(query("false").rows) == 15
    expected = send(broker, kept, 0, 1) + send(broker, aged, 0, 3)[1:]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.delete_records({TopicPartition(aged, 0): 6}))
    failing = start(frames["true"], tmp_path / "true", BatchLog(), availableNow=True)
    assert "loss-b-0 are gone before they were read: offset 5" in failure_of(failing)
    assert query("false").places == expected

    broker.delete_topic(deleted)
    expected = send(broker, kept, 0, 1)
    failing = start(frames["true"], tmp_path / "true", BatchLog(), availableNow=True)
    assert "failOnDataLoss" in failure_of(failing)
    assert query("false").places == expected
