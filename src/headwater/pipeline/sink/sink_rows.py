"""Rows of Spark as records: which columns there may be, and which rows go where.

    value      binary or string                            needed; null is a tombstone
    key        binary or string                            decides the partition
    topic      string                                      needed without the option `topic`
    partition  int                                         null leaves it to the key
    headers    array<struct<key: string, value: binary>>
    timestamp  timestamp                                   now, where there is none

The first five are those of Spark's own Kafka connector. Other columns are refused, because whoever
gave them would miss them in the topic.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from headwater.client.columns.arrow.library import load_arrow
from headwater.pipeline.sink.sink_errors import SinkRowError, SinkSchemaError

if TYPE_CHECKING:
    import pyarrow

_TEXT_OR_BYTES: Final = (StringType, BinaryType)
_TYPES: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "value": (_TEXT_OR_BYTES, "binary or string"),
    "key": (_TEXT_OR_BYTES, "binary or string"),
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType,), "int"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
    "timestamp": ((TimestampType,), "timestamp"),
}
#: What a producer takes as they are.
_RECORD_COLUMNS: Final = ("key", "value", "headers", "timestamp")
NO_TOPIC: Final = "A row has null in the column 'topic', so there is no topic to write it to."


class RowGroup(NamedTuple):
    """Rows that go to one topic, and to one partition unless that is left to their keys."""

    topic: str
    partition: int | None
    rows: pyarrow.RecordBatch


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raise `SinkSchemaError` for columns that cannot be written."""
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        expected = _TYPES.get(field.name)
        if expected is None:
            raise SinkSchemaError(_unknown_column(field.name))
        kinds, described = expected
        if not isinstance(field.dataType, kinds) or (
            field.name == "headers" and not _are_headers(field.dataType)
        ):
            raise SinkSchemaError(
                f"The column '{field.name}' is {field.dataType.simpleString()}, but it must be "
                f"{described}."
            )
        if names.count(field.name) > 1:
            raise SinkSchemaError(f"There are several columns '{field.name}'.")
    if "value" not in names:
        raise SinkSchemaError(
            f"There is no column 'value', which is what is written; there is "
            f"{', '.join(map(repr, names)) or 'no column'}."
        )
    if topic is None and "topic" not in names:
        raise SinkSchemaError(
            "Nothing says which topic to write to: give the option 'topic', or the rows a column "
            "'topic'."
        )


def group_rows(batch: pyarrow.RecordBatch, topic: str | None) -> Iterator[RowGroup]:
    """The rows by topic and partition, those of each in their order.

    The option `topic` goes before the column. Raises `SinkRowError` for a row without a topic.
    """
    names = batch.schema.names
    record = record_columns(batch)
    if not len(batch):
        return
    topics = [(topic, None)] if topic is not None else _topics(batch.column("topic"))
    for name, mask in topics:
        rows, partitions = record, batch.column("partition") if "partition" in names else None
        if mask is not None:
            rows, partitions = rows.filter(mask), partitions and partitions.filter(mask)
        if partitions is None or partitions.null_count == len(partitions):
            yield RowGroup(name, None, rows)
        else:
            yield from _by_partition(name, rows, partitions)


def record_columns(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """The columns that are in a record."""
    return batch.select([name for name in _RECORD_COLUMNS if name in batch.schema.names])


def _topics(column: pyarrow.Array) -> list[tuple[str, pyarrow.Array | None]]:
    """Each topic, and which rows are its own; None for all."""
    if column.null_count:
        raise SinkRowError(NO_TOPIC)
    found = column.unique().to_pylist()
    if len(found) == 1:
        return [(found[0], None)]
    return [(name, load_arrow().compute.equal(column, name)) for name in found]


def _by_partition(
    topic: str, rows: pyarrow.RecordBatch, partitions: pyarrow.Array
) -> Iterator[RowGroup]:
    found = partitions.unique().to_pylist()
    for partition in found:
        if len(found) == 1:
            yield RowGroup(topic, partition, rows)
        elif partition is None:
            yield RowGroup(topic, None, rows.filter(partitions.is_null()))
        else:
            mask = load_arrow().compute.equal(partitions, partition)
            yield RowGroup(topic, partition, rows.filter(mask))


def _are_headers(kind: DataType) -> bool:
    element = kind.elementType if isinstance(kind, ArrayType) else None
    if not isinstance(element, StructType) or element.names != ["key", "value"]:
        return False
    key, value = (field.dataType for field in element.fields)
    return isinstance(key, StringType) and isinstance(value, _TEXT_OR_BYTES)


def _unknown_column(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _TYPES, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "select those to write, or put it into 'value'"
    return (
        f"The column '{name}' cannot be written: a record has {', '.join(_TYPES)}; "
        f"{hint}{'' if near else '.'}"
    )
