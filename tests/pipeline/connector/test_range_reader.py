"""What a task does, without Spark around it: the batches' types, and what is kept between tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from headwater import errors
from headwater.pipeline.connector import range_reader
from headwater.pipeline.connector.offset_ranges import OffsetRange
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.connector.range_reader import RangePartition, close_clients, read_range
from headwater.pipeline.connector.record_schema import source_schema
from headwater.pipeline.connector.source_settings import parse_source_settings
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.source_reading import send
from tests.support.values.poison_batches import (
    POISONED_END,
    POISONED_GOOD_OFFSETS,
    POISONED_TOPIC,
    SPAN,
    poisoned_broker,
)


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    yield
    close_clients()


def rows(broker: RunningBroker, partition: InputPartition, **options: str) -> list[pa.RecordBatch]:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": "any",
        **{name.replace("__", "."): value for name, value in options.items()},
    }
    settings = parse_source_settings(given, Mode.BATCH)
    return list(read_range(partition, settings, source_schema(given)))


@pytest.mark.parametrize(
    "columns", ["key,value,topic,partition,offset", "timestamp,headers", "value"]
)
def test_batches_have_the_types_that_spark_expects(broker: RunningBroker, columns: str) -> None:
    topic = broker.create_topic()
    send(broker, topic, 0, 10)
    options = {"headwater__columns": columns}
    partition = RangePartition(OffsetRange(topic, 0, 2, 9))
    batches = rows(broker, partition, **options)
    expected = to_arrow_schema(source_schema({"headwater.columns": columns}), timezone="UTC")
    assert all(batch.schema.equals(expected) for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 7


def test_the_task_of_a_query_without_any_reads_nothing(broker: RunningBroker) -> None:
    assert rows(broker, InputPartition(None)) == []


def test_connections_are_kept_for_the_next_task_and_not_too_many(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    send(broker, topic, 0, 3)
    partition = RangePartition(OffsetRange(topic, 0, 0, 3))
    rows(broker, partition)
    (client,) = range_reader._clients.values()
    rows(broker, partition)
    assert list(range_reader._clients.values()) == [client]
    for number in range(6):
        rows(broker, partition, kafka__client__id=f"client-{number}")
    assert len(range_reader._clients) == 4
    assert client not in range_reader._clients.values()
    assert not client.is_connected


def test_the_collector_is_left_alone_outside_of_spark(broker: RunningBroker) -> None:
    before = gc.get_freeze_count()
    topic = broker.create_topic()
    send(broker, topic, 0, 1)
    rows(broker, RangePartition(OffsetRange(topic, 0, 0, 1)))
    assert gc.get_freeze_count() == before


def test_a_batch_that_cannot_be_read_fails_the_task_or_is_left_out(tmp_path: Path) -> None:
    partition = RangePartition(OffsetRange(POISONED_TOPIC, 0, 0, POISONED_END))
    with poisoned_broker(tmp_path) as broker:
        with pytest.raises(errors.CorruptBatchError, match=f"offsets {SPAN} to {2 * SPAN - 1} of "):
            rows(broker, partition)
        batches = rows(
            broker, partition, kafka__corrupt__batch__policy="skip", headwater__columns="offset"
        )
    read = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert read == POISONED_GOOD_OFFSETS
