"""Avro values to columns and back, by fastavro in Spark's Python workers, a batch at a time.

A value is one record in Avro's binary form, by one schema that both sides know. With
`confluent_header` it has five bytes in front, a zero and a schema's number, as schema registries
put them there; the number is not looked up. What is left after the record makes it a bad one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import fastavro
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from headwater.pipeline.compiled.coding.arrow_function import arrow_function
from headwater.pipeline.compiled.coding.avro_types import spark_schema
from headwater.pipeline.compiled.coding.text_decoding import EMPTY, NO_VALUE

_HEADER_BYTES: Final = 5


def decode_record(value: bytes, avro_schema: str, *, confluent_header: bool) -> dict[str, Any]:
    """One value as a dictionary; a `ValueError` with a sentence for one that is not good."""
    if confluent_header:
        if len(value) < _HEADER_BYTES or value[0] != 0:
            raise ValueError("the value does not begin with a zero and a schema's number")
        value = value[_HEADER_BYTES:]
    stream = io.BytesIO(value)
    try:
        row = fastavro.schemaless_reader(stream, _parsed(avro_schema), None)
    except EOFError:
        raise ValueError("the value ends before the Avro record does") from None
    # fastavro meets bytes that are no Avro with whatever its parts raise.
    except Exception as error:
        text = str(error) or type(error).__name__
        raise ValueError(f"the value is not a record of the Avro schema: {text}") from None
    left = len(value) - stream.tell()
    if left:
        raise ValueError(f"{left} bytes are left after the Avro record")
    plain = _plain(row)
    if not isinstance(plain, dict):
        raise ValueError("the value is not an Avro record")
    return plain


def encode_record(row: Mapping[str, Any], avro_schema: str) -> bytes:
    """One row in Avro's binary form."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, _parsed(avro_schema), dict(row))
    return stream.getvalue()


@lru_cache(maxsize=64)
def _parsed(avro_schema: str) -> Any:
    return fastavro.parse_schema(json.loads(avro_schema))


def _plain(value: Any) -> Any:
    """What fastavro gives, as what Arrow takes for the column."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, UUID) else value


def decoded_avro(value: Column, avro_schema: str, *, confluent_header: bool) -> Column:
    """A struct of `row` and `problem`."""
    schema = spark_schema(avro_schema)
    result = StructType([StructField("row", schema), StructField("problem", StringType())])
    arrow_type = to_arrow_type(result, timezone="UTC")

    def decode(values: pa.Array) -> pa.Array:
        rows: list[dict[str, Any]] = []
        for each in values.to_pylist():
            if not each:
                rows.append({"row": None, "problem": NO_VALUE if each is None else EMPTY})
                continue
            try:
                row = decode_record(each, avro_schema, confluent_header=confluent_header)
                rows.append({"row": row, "problem": None})
            except ValueError as error:
                rows.append({"row": None, "problem": str(error)})
        return _filled(rows, arrow_type)

    return arrow_function(decode, result)(value)


def _filled(rows: list[dict[str, Any]], arrow_type: pa.DataType) -> pa.Array:
    """The rows as one array; where a value does not go into its column, that record is bad."""
    try:
        return pa.array(rows, arrow_type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        for number, each in enumerate(rows):
            try:
                pa.array([each], arrow_type)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                rows[number] = {"row": None, "problem": f"a value does not fit its column: {error}"}
        return pa.array(rows, arrow_type)


def encoded_avro(row: Column, avro_schema: str) -> Column:
    """The value of a struct column."""

    def encode(rows: pa.Array) -> pa.Array:
        values = [
            encode_record(_in_utc(each), avro_schema)
            for each in rows.to_pylist(maps_as_pydicts="strict")
        ]
        return pa.array(values, pa.binary())

    return arrow_function(encode, BinaryType())(row)


def _in_utc(value: Any) -> Any:
    """Moments as fastavro writes them: Arrow gives them in the session's zone."""
    if isinstance(value, dict):
        return {name: _in_utc(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_utc(each) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
