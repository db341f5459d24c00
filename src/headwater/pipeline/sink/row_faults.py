"""Which rows of an Arrow batch cannot be written, found before any of them is sent.

A transaction in which one record was refused can only be aborted, and records are refused a batch
at a time; so rows are judged beforehand. It is done by columns: only rows with a fault, and those
that may be too large, are ever looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from headwater.base.errors import KafkaError
from headwater.client.columns.arrow.library import load_arrow
from headwater.client.columns.encoding.row_size import RowSize, row_size
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors import InvalidRecordError
from headwater.client.kafka_errors.record_errors import MessageTooLargeError
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS, compression_of
from headwater.pipeline.sink.sink_errors import SinkRowError
from headwater.pipeline.sink.sink_rows import NO_TOPIC, record_columns
from headwater.pipeline.sink.topic_limits import FindLimits, TopicLimits

if TYPE_CHECKING:
    import pyarrow

#: What a record alone in its batch has around key, value and headers: less than this.
_AROUND_BYTES: Final = 128
#: The same of each header.
_AROUND_HEADER_BYTES: Final = 10

SizeOf = Callable[["pyarrow.RecordBatch"], RowSize]


class RowFault(NamedTuple):
    """A row that cannot be written, by its number in the batch."""

    row: int
    topic: str | None
    partition: int | None
    error: KafkaError


def size_with(client: Mapping[str, str]) -> SizeOf:
    """How large a row is for a producer with these settings."""
    compression, level = compression_of(parse_settings(PRODUCER_SETTINGS, client, {}))
    return lambda row: row_size(record_columns(row), compression, level)


@dataclass(frozen=True, slots=True)
class RowJudge:
    #: The topic of all rows; None leaves it to the column.
    topic: str | None
    #: The producer's `max.request.size`.
    row_bytes_max: int
    size_of: SizeOf

    def faults(self, batch: pyarrow.RecordBatch, find_limits: FindLimits) -> list[RowFault]:
        """The first thing that is wrong with each row that cannot be written, in their order."""
        found: dict[int, RowFault] = {}
        nameless = _with_nameless_headers(batch)
        for topic, mask in self._topics(batch):
            limits = SinkRowError(NO_TOPIC) if topic is None else find_limits(topic)
            errors: Iterator[tuple[int, KafkaError]]
            if isinstance(limits, KafkaError):
                rows = range(len(batch)) if mask is None else _rows(mask)
                errors = ((row, limits) for row in rows)
            else:
                errors = self._errors(batch, str(topic), mask, limits, nameless)
            for row, error in errors:
                found.setdefault(row, RowFault(row, topic, _partition(batch, row), error))
        return [found[row] for row in sorted(found)]

    def _topics(self, batch: pyarrow.RecordBatch) -> list[tuple[str | None, pyarrow.Array | None]]:
        """Each topic, and which rows are its own; None for all."""
        if self.topic is not None:
            return [(self.topic, None)]
        column = batch.column("topic")
        names = column.unique().to_pylist()
        if len(names) == 1:
            return [(names[0], None)]
        equal = load_arrow().compute.equal
        return [(name, column.is_null() if name is None else equal(column, name)) for name in names]

    def _errors(
        self,
        batch: pyarrow.RecordBatch,
        topic: str,
        mask: pyarrow.Array | None,
        limits: TopicLimits,
        nameless: Container[int],
    ) -> Iterator[tuple[int, KafkaError]]:
        """What is wrong with rows of a topic that can be written to."""
        compute = load_arrow().compute
        if "partition" in batch.schema.names:
            column, count = batch.column("partition"), limits.partition_count
            is_wrong = compute.or_(compute.less(column, 0), compute.greater_equal(column, count))
            for row in _rows(is_wrong, mask):
                yield row, UnknownTopicError.partition(topic, column[row].as_py(), count)
        if nameless:
            for row in range(len(batch)) if mask is None else _rows(mask):
                if row in nameless:
                    yield row, InvalidRecordError("A header's key may not be null.")
        least_max = min(self.row_bytes_max, limits.batch_bytes_max or self.row_bytes_max)
        for row in _rows(compute.greater(_sizes_at_most(batch), least_max), mask):
            error = None if row in nameless else self._too_large(batch.slice(row, 1), topic, limits)
            if error is not None:
                yield row, error

    def _too_large(
        self, row: pyarrow.RecordBatch, topic: str, limits: TopicLimits
    ) -> KafkaError | None:
        size = self.size_of(row)
        if size.record_bytes > self.row_bytes_max:
            return MessageTooLargeError(
                f"A record of {size.record_bytes} bytes is larger than max.request.size, which is "
                f"{self.row_bytes_max}."
            )
        if limits.batch_bytes_max is not None and size.batch_bytes > limits.batch_bytes_max:
            return MessageTooLargeError(
                f"A record that is a batch of {size.batch_bytes} bytes is larger than "
                f"max.message.bytes of the topic {topic!r}, which is {limits.batch_bytes_max}."
            )
        return None


def _rows(mask: pyarrow.Array, also: pyarrow.Array | None = None) -> list[int]:
    """The numbers of the rows for which it is true, and `also` is."""
    compute = load_arrow().compute
    both = mask if also is None else compute.and_(mask, also)
    found: list[int] = compute.indices_nonzero(both).to_pylist()
    return found


def _partition(batch: pyarrow.RecordBatch, row: int) -> int | None:
    if "partition" not in batch.schema.names:
        return None
    number: int | None = batch.column("partition")[row].as_py()
    return number


def _with_nameless_headers(batch: pyarrow.RecordBatch) -> frozenset[int]:
    """The rows of which a header has null for its key, or is null itself."""
    if "headers" not in batch.schema.names:
        return frozenset()
    column = batch.column("headers")
    if not column.flatten().flatten()[0].null_count:
        return frozenset()
    return frozenset(
        row
        for row, headers in enumerate(column.to_pylist())
        if any(each is None or each["key"] is None for each in headers or ())
    )


def _sizes_at_most(batch: pyarrow.RecordBatch) -> pyarrow.Array:
    """How many bytes each row has as a batch of its own, uncompressed, or more than that."""
    arrow = load_arrow()
    sizes = np.full(len(batch), _AROUND_BYTES, np.int64)
    for name in ("key", "value"):
        if name in batch.schema.names:
            sizes += _lengths(batch.column(name))
    if "headers" in batch.schema.names:
        column = batch.column("headers")
        keys, values = column.flatten().flatten()
        ends = np.cumsum(_lengths(keys) + _lengths(values) + _AROUND_HEADER_BYTES)
        counts = _numbers(arrow.compute.list_value_length(column))
        bounds = np.concatenate(([0], np.cumsum(counts)))
        before = np.concatenate(([0], ends))
        sizes += before[bounds[1:]] - before[bounds[:-1]]
    return arrow.array(sizes)


def _lengths(column: pyarrow.Array) -> Any:
    return _numbers(load_arrow().compute.binary_length(column))


def _numbers(column: pyarrow.Array) -> Any:
    """As an array of numpy, with 0 for null."""
    arrow = load_arrow()
    return column.cast(arrow.int64()).fill_null(0).to_numpy(zero_copy_only=False)
