"""The columns of a row of the source, and which of them somebody wants.

Names, types and order are those of Spark's own Kafka connector. Spark tells a Python source nothing
of the columns that a query uses, so leaving some out is asked for: by a schema with a part of them,
or by the option `headwater.columns`. What is left out is not decoded.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.pipeline.connector.option_table import OptionError
from headwater.pipeline.connector.source_settings import chosen_columns, wants_headers

HEADERS: Final = "headers"

_HEADER_TYPE = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)

ALL_COLUMNS: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField(HEADERS, _HEADER_TYPE),
    ]
)


def source_schema(options: Mapping[str, str]) -> StructType:
    """The columns that the options ask for."""
    names = chosen_columns(options)
    if names is None:
        has_headers = wants_headers(options)
        return StructType([each for each in ALL_COLUMNS if has_headers or each.name != HEADERS])
    known = {each.name.lower(): each for each in ALL_COLUMNS}
    fields: list[StructField] = []
    for name in names:
        column = known.get(name.lower())
        if column is None:
            raise OptionError(
                f"The option 'headwater.columns' cannot have {name!r}{_nearest(name)}"
            )
        if column in fields:
            raise OptionError(f"The option 'headwater.columns' has {name!r} twice.")
        fields.append(column)
    return StructType(fields)


def check_schema(schema: StructType) -> None:
    """Raise `OptionError` unless a schema is a part of the columns, each with its type."""
    known = {each.name: each for each in ALL_COLUMNS}
    if not schema.fields:
        raise OptionError("The schema has no columns: name at least one of a record's.")
    if len(set(schema.names)) < len(schema.names):
        raise OptionError("The schema has a column twice.")
    for each in schema.fields:
        column = known.get(each.name)
        if column is None:
            raise OptionError(f"The schema cannot have a column {each.name!r}{_nearest(each.name)}")
        # Whether null is allowed is nothing that a type says: what is read may be null or not.
        if each.dataType.simpleString() != column.dataType.simpleString():
            raise OptionError(
                f"The column {each.name!r} of the schema cannot be "
                f"{each.dataType.simpleString()}: it is {column.dataType.simpleString()}."
            )


def _nearest(name: str) -> str:
    names = [each.name for each in ALL_COLUMNS]
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f": the columns are {', '.join(names)}."
