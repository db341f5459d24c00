"""JSON and CSV values to columns, by Spark's own parsers, strictly.

Every decoding here gives one struct for a value: `row`, and `problem`, which is null for a good
record and a sentence for a bad one. Spark's parsers are lenient: of `{"a": 1} garbage` they read
the first part and forget the rest. So JSON is parsed as the only element of an array inside an
object of our own; whatever does not end where the record ends breaks that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from headwater.pipeline.compiled.coding.row_shape import shape_problem

NO_VALUE: Final = "the record has no value"
NOT_UTF8: Final = "the value is not UTF-8"
EMPTY: Final = "the value is empty"
NOT_JSON: Final = "the value is not JSON that fits the schema"
NOT_CSV: Final = "the value is not a line of CSV that fits the schema"

_CORRUPT: Final = "_headwater_corrupt"
_STRICT: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
#: A quote inside of quotes is doubled, as everybody but Spark has it.
_USUAL_CSV: Final = {"escape": '"'}
_STRICT_JSON: Final = {"allowNonNumericNumbers": "false", "allowSingleQuotes": "false"}


def decoded_json(value: Column, schema: StructType, options: Mapping[str, str]) -> Column:
    """`struct<parsed>` of a JSON value; `json_result` makes row and problem of it."""
    wrapped = f.concat(f.lit('{"v":['), value.cast("string"), f.lit('],"e":1}'))
    wrapper = StructType(
        [
            StructField("v", ArrayType(_all_nullable(schema))),
            StructField("e", IntegerType()),
            StructField(_CORRUPT, StringType()),
        ]
    )
    return f.from_json(wrapped, wrapper, {**_STRICT_JSON, **options, **_STRICT})


def json_result(value: Column, parsed: Column, schema: StructType) -> tuple[Column, Column]:
    """The row of what `decoded_json` gave, and what is wrong with it."""
    row = f.try_element_at(parsed.getField("v"), f.lit(1))
    fits = (
        parsed.getField(_CORRUPT).isNull()
        & f.coalesce(parsed.getField("e") == 1, f.lit(False))
        & f.coalesce(f.size(parsed.getField("v")) == 1, f.lit(False))
        & row.isNotNull()
    )
    return row, _problem(value, fits, NOT_JSON, shape_problem(row, schema))


def decoded_csv(value: Column, schema: StructType, options: Mapping[str, str]) -> Column:
    """A CSV value's columns, and one more for what does not fit."""
    fields = [*_all_nullable(schema).fields, StructField(_CORRUPT, StringType())]
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
    return f.from_csv(value.cast("string"), ddl, {**_USUAL_CSV, **options, **_STRICT})


def csv_result(value: Column, parsed: Column, schema: StructType) -> tuple[Column, Column]:
    """The row of what `decoded_csv` gave, and what is wrong with it."""
    names = schema.fieldNames()
    row = f.struct(*(parsed.getField(name).alias(name) for name in names))
    fits = parsed.getField(_CORRUPT).isNull() & parsed.isNotNull()
    return row, _problem(value, fits, NOT_CSV, shape_problem(row, schema))


def _problem(value: Column, fits: Column, misfit: str, shape: Column) -> Column:
    return (
        f.when(value.isNull(), f.lit(NO_VALUE))
        .when(~f.is_valid_utf8(value.cast("string")), f.lit(NOT_UTF8))
        .when(f.trim(value.cast("string")) == "", f.lit(EMPTY))
        .when(~fits, f.lit(misfit))
        .otherwise(shape)
    )


def _all_nullable(schema: StructType) -> StructType:
    """What Spark parses by: with NOT NULL in it, some of its parsers make up a zero instead."""
    return StructType([StructField(each.name, each.dataType, True) for each in schema.fields])
