"""Rows as records of a topic: the columns key, value and headers that the connector's sink takes.

Without a column named for it, the value is the whole row in the sink's format. JSON keeps columns
that are null, so that every value has the same shape.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from headwater.pipeline.compiled.coding.avro_coding import encoded_avro
from headwater.pipeline.compiled.coding.avro_types import avro_schema
from headwater.pipeline.declared.specs.sink import SinkSpec

_JSON: Final = {"ignoreNullFields": "false"}
_TAKEN_RAW: Final = ("key", "headers", "partition", "timestamp")


def topic_rows(frame: DataFrame, sink: SinkSpec) -> DataFrame:
    """The columns that are written; none of the rest gets there."""
    columns = _raw_columns(frame, sink) if sink.format == "raw" else _columns(frame, sink)
    if sink.topic_column:
        columns["topic"] = f.col(sink.topic_column).cast("string")
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def _raw_columns(frame: DataFrame, sink: SinkSpec) -> dict[str, Column]:
    columns: dict[str, Column] = {name: f.col(name) for name in _TAKEN_RAW if name in frame.columns}
    columns["value"] = f.col(sink.value or "value")
    if sink.key:
        columns["key"] = _plain_bytes(frame, sink.key)
    if sink.headers:
        columns["headers"] = _headers(frame, sink)
    return columns


def _columns(frame: DataFrame, sink: SinkSpec) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    if sink.key:
        columns["key"] = _plain_bytes(frame, sink.key)
    columns["value"] = _plain_bytes(frame, sink.value) if sink.value else _encoded(frame, sink)
    if sink.headers:
        columns["headers"] = _headers(frame, sink)
    return columns


def _encoded(frame: DataFrame, sink: SinkSpec) -> Column:
    left_out = {sink.topic_column, *sink.headers.values()}
    names = [name for name in frame.columns if name not in left_out]
    row = f.struct(*(f.col(f"`{name}`") for name in names))
    if sink.format == "csv":
        return f.to_csv(row)
    if sink.format == "avro":
        schema = StructType([frame.schema[name] for name in names])
        return encoded_avro(row, sink.avro_schema or avro_schema(schema, sink.name))
    return f.to_json(row, _JSON)


def _headers(frame: DataFrame, sink: SinkSpec) -> Column:
    return f.array(
        *(
            f.struct(
                f.lit(name).alias("key"),
                _plain_bytes(frame, column).cast("binary").alias("value"),
            )
            for name, column in sink.headers.items()
        )
    )


def _plain_bytes(frame: DataFrame, name: str) -> Column:
    """A column as text or bytes: what has parts as JSON, a number or a time as Spark shows it."""
    column, kind = f.col(name), _kind(frame, name)
    if isinstance(kind, (BinaryType, StringType)):
        return column
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return f.to_json(column, _JSON)
    return column.cast("string")


def _kind(frame: DataFrame, name: str) -> DataType:
    return frame.select(f.col(name)).schema.fields[0].dataType
