"""What a task of Spark does: reads its range and yields Arrow batches in Spark's own types.

A Python worker does one task after the other, often of the same query, so its connections are kept
in the process from one task to the next. They are few, and close by themselves when idle. Spark
collects garbage in the worker after each task, which takes longer than reading a small range; so
what the first task leaves behind, all modules above all, is put out of the collector's sight.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headwater.client.columns.arrow.batches import ArrowPart, columns_to_arrow
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from headwater.client.ranges import RangeClient
from headwater.pipeline.connector.data_loss import DataLossReport, aged_out, beyond_end
from headwater.pipeline.connector.offset_ranges import OffsetRange
from headwater.pipeline.connector.record_schema import HEADERS
from headwater.pipeline.connector.source_settings import SourceSettings
from headwater.pipeline.stages.source_counts import SourceCounts, query_of_task

if TYPE_CHECKING:
    import pyarrow

    from headwater.client.columns.decoding.decoded_columns import RecordColumns

#: So many clusters, or kinds of settings, are worth keeping connections to.
_CLIENTS_MAX: Final = 4

#: The clients of this process, the one used last at the end.
_clients: dict[tuple[tuple[str, str], ...], RangeClient] = {}
#: Kept here because `gc.get_freeze_count` counts object by object, 10 ms in a worker.
_is_frozen = False


class RangePartition(InputPartition):
    """The task of reading one range."""

    def __init__(self, offsets: OffsetRange) -> None:
        super().__init__(offsets)
        self.offsets = offsets


def read_range(
    partition: InputPartition,
    settings: SourceSettings,
    schema: StructType,
    query: Callable[[], str] = query_of_task,
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a task's range; only counts of an audit stage tell whose they are."""
    # Spark makes a task of its own for a query that has none.
    if not isinstance(partition, RangePartition):
        return
    if not settings.audit_stage:
        yield from _read_range(partition.offsets, settings, schema, lambda _: None)
        return
    counts = SourceCounts(settings.audit_stage, query(), partition.offsets)
    yield from _read_range(partition.offsets, settings, schema, counts.add)
    # Not before: who reads a part of the rows only does not have the rest.
    counts.publish(settings.client)


def _read_range(
    offsets: OffsetRange,
    settings: SourceSettings,
    schema: StructType,
    count: Callable[[RecordColumns], object],
) -> Iterator[pyarrow.RecordBatch]:
    topic_partition, position, end = offsets.topic_partition, offsets.start, offsets.end
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    with_headers = HEADERS in schema.names
    loss = DataLossReport(is_fatal=settings.fails_on_data_loss)
    client = _client(settings.client, settings.poll_timeout_ms)
    while position < end:
        reading = client.read(topic_partition, position, end, with_headers=with_headers)
        try:
            for columns in reading:
                count(columns)
                part = ArrowPart(*topic_partition, columns)
                yield columns_to_arrow([part], arrow_schema)
            _freeze_garbage()
            return
        except OffsetOutOfRangeError:
            position = _after_loss(client, offsets, reading.position, loss)
        except (UnknownTopicError, UnknownTopicOrPartitionError):
            loss.tell(f"{topic_partition} is gone, and its records from {reading.position} on.")
            return


def _after_loss(
    client: RangeClient, offsets: OffsetRange, position: int, loss: DataLossReport
) -> int:
    """Where to go on when `position` is not in the log."""
    topic_partition = offsets.topic_partition
    earliest, latest = client.bounds(topic_partition)
    if position < earliest:
        loss.tell(aged_out(topic_partition, position, earliest))
        return earliest
    # The range was there when it was planned, so what is missing does not come any more.
    if position >= latest:
        loss.tell(beyond_end(topic_partition, offsets.end, latest))
        return offsets.end
    # It is there again: the leader has changed meanwhile.
    return position


def _client(settings: Mapping[str, str], poll_timeout_ms: int) -> RangeClient:
    key = (*sorted(settings.items()), ("", str(poll_timeout_ms)))
    client = _clients.pop(key, None)
    if client is None:
        client = RangeClient(settings, progress_timeout_s=poll_timeout_ms / 1000)
    _clients[key] = client
    while len(_clients) > _CLIENTS_MAX:
        _clients.pop(next(iter(_clients))).close()
    return client


def _freeze_garbage() -> None:
    """Once in a worker of Spark; anywhere else the collector is not ours."""
    global _is_frozen
    if not _is_frozen and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        _is_frozen = True


def close_clients() -> None:
    """Close all that this process keeps open, for those who know that it reads no more."""
    while _clients:
        _clients.popitem()[1].close()
