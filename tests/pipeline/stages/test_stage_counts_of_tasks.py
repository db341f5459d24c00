"""What tasks count, without Spark: by which time, and what becomes of what is counted again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from headwater.delivery.audit.stage_counts import StageCounts
from headwater.delivery.audit.stage_rows import StageSum, decode_stage_row, sum_stages
from headwater.pipeline.connector.offset_ranges import OffsetRange
from headwater.pipeline.connector.option_table import Mode, OptionError
from headwater.pipeline.connector.range_reader import RangePartition, close_clients, read_range
from headwater.pipeline.connector.record_schema import source_schema
from headwater.pipeline.connector.source_settings import parse_source_settings
from headwater.pipeline.sink.failed_rows import WriteName
from headwater.pipeline.sink.plain_write import RowsWritten, write_rows
from headwater.pipeline.sink.producer_cache import PRODUCERS
from headwater.pipeline.sink.sink_options import SinkSettings, parse_sink_settings
from headwater.pipeline.stages import stage_publisher
from headwater.pipeline.stages.sink_counts import TaskCounts, publish_batch
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.source_reading import FIRST_MS, send
from tests.support.values.whole_topic import read_topic

_FAR_MS = 2_000_000_000_000
#: Between two buckets: the last of one, the first of the next.
_EDGE_MS = FIRST_MS // 60_000 * 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"log.retention.ms": "-1"}) as running:
        yield running
    close_clients()
    PRODUCERS.close()


def told(broker: RunningBroker, topic: str) -> list[StageSum]:
    values = read_topic(broker.bootstrap, "__audit_stages", 1)[0]
    rows = [decode_stage_row(value) for value in values]
    return sum_stages([row for row in rows if row is not None], topic, 0, _FAR_MS)


def read(broker: RunningBroker, offsets: OffsetRange, query: str, **options: str) -> Iterator[Any]:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": "any",
        "headwater.audit.stage": "lake",
        **options,
    }
    settings = parse_source_settings(given, Mode.BATCH)
    return read_range(RangePartition(offsets), settings, source_schema(given), lambda: query)


def test_a_range_counts_once_however_often_it_is_read(broker: RunningBroker) -> None:
    topic = broker.create_topic(partitions=2)
    for partition in range(2):
        send(broker, topic, partition, 100)
    for _ in range(2):
        for start, end in ((0, 60), (60, 100)):
            list(read(broker, OffsetRange(topic, 0, start, end), "q"))
        # Not even the timestamps are asked for.
        pruned = {"headwater.columns": "value"}
        list(read(broker, OffsetRange(topic, 1, 0, 100), "q", **pruned))
    [found] = told(broker, topic)
    assert (found.tier, found.stage, found.count) == ("source", "lake", 200)
    assert found.bytes == 2 * sum(len(b"%d" % number) for number in range(100))
    buckets = [(FIRST_MS + number * 1000) // 60_000 * 60_000 for number in range(100)]
    assert found.count_by_bucket == {each: 2 * buckets.count(each) for each in set(buckets)}
    # Another query reads it again, and that is what happened.
    list(read(broker, OffsetRange(topic, 0, 0, 60), "other"))
    assert [each.count for each in told(broker, topic)] == [260]


def test_a_task_that_ends_early_has_counted_nothing(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    send(broker, topic, 0, 10)
    reading = read(broker, OffsetRange(topic, 0, 0, 10), "limited")
    next(reading)
    del reading
    whole = read(broker, OffsetRange(topic, 0, 0, 5), "whole")
    list(whole)
    assert [each.count for each in told(broker, topic)] == [5]


def written(settings: SinkSettings, times_ms: list[int]) -> RowsWritten:
    rows = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([b"v"] * len(times_ms), pa.binary()),
            "timestamp": pa.array(times_ms, pa.timestamp("ms", "UTC")),
        }
    )
    return write_rows(settings, iter([rows]), lambda: WriteName("q", 3))


def sink(broker: RunningBroker, topic: str, stage: str = "copy") -> SinkSettings:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    if stage:
        options["headwater.audit.stage"] = stage
    return parse_sink_settings(options, Mode.STREAM)


def test_a_batch_counts_as_it_was_written_last(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    settings = sink(broker, topic)
    first = [written(settings, [_EDGE_MS - 2, _EDGE_MS - 1]), written(settings, [_EDGE_MS - 9])]
    publish_batch(settings, 3, [*first, None])
    [found] = told(broker, topic)
    assert (found.tier, found.stage) == ("sink", "copy")
    assert found.count_by_bucket == {_EDGE_MS - 60_000: 3}
    # Run again, and later: rows have times of another bucket, and a batch of brokers is of one.
    again = [written(settings, [_EDGE_MS - 1, _EDGE_MS + 1]), written(settings, [_EDGE_MS])]
    publish_batch(settings, 3, again)
    assert told(broker, topic)[0].count_by_bucket == {_EDGE_MS: 3}
    publish_batch(settings, 4, [written(settings, [_EDGE_MS])])
    assert told(broker, topic)[0].count_by_bucket == {_EDGE_MS: 4}
    # Tasks of a batch that had been decided on say nothing, and what was told stays.
    publish_batch(settings, 4, [RowsWritten(0), None])
    assert told(broker, topic)[0].count == 4


def test_nothing_is_counted_without_a_name(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    done = written(sink(broker, topic, stage=""), [_EDGE_MS])
    assert done == RowsWritten(1)


def test_counts_that_cannot_be_written_are_told_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_publisher, "_TIMEOUT_S", 0.3)
    settings = parse_sink_settings(
        {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "topic": "t",
            "headwater.audit.stage": "copy",
        },
        Mode.STREAM,
    )
    counts = StageCounts(60_000)
    counts.add("t", 0, 5, 7, 0, 9)
    publish_batch(settings, 3, [RowsWritten(7, 0, TaskCounts("q", tuple(counts.take({}))))])
    assert "The audit stage copy lost the counts of 7 records (q, 3)" in caplog.text


def test_a_stage_has_a_name() -> None:
    options = {"kafka.bootstrap.servers": "a:1", "topic": "t", "HEADWATER.audit.stage": " "}
    with pytest.raises(OptionError, match="it names a stage"):
        parse_sink_settings(options, Mode.BATCH)
