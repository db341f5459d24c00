"""Which columns a row has."""

from __future__ import annotations

import pytest
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from headwater.pipeline.connector.option_table import OptionError
from headwater.pipeline.connector.record_schema import ALL_COLUMNS, check_schema, source_schema


def test_the_columns_are_those_of_sparks_connector() -> None:
    assert source_schema({}).names == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    ]  # fmt: skip
    assert source_schema({"includeheaders": "true"}) == ALL_COLUMNS
    assert ALL_COLUMNS["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )


def test_a_part_of_the_columns_in_the_order_given() -> None:
    schema = source_schema({"headwater.columns": "offset, HEADERS ,value"})
    assert schema.names == ["offset", "headers", "value"]
    check_schema(schema)


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ("offest", "did you mean 'offset'?"),
        ("xyz", "the columns are key, value,"),
        ("value,value", "twice"),
        ("", "the columns are"),
    ],
)
def test_columns_that_are_not_there(columns: str, part: str) -> None:
    with pytest.raises(OptionError) as caught:
        source_schema({"headwater.columns": columns})
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        (StructType().add("offest", LongType()), "did you mean 'offset'?"),
        (StructType().add("value", StringType()), "cannot be string: it is binary"),
        (StructType().add("offset", IntegerType()), "cannot be int: it is bigint"),
    ],
)
def test_a_schema_is_a_part_of_the_columns(schema: StructType, part: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_schema(schema)
    assert part in str(caught.value)


def test_an_empty_schema_is_refused() -> None:
    with pytest.raises(OptionError, match="no columns"):
        check_schema(StructType([]))
    doubled = StructType().add("value", BinaryType()).add("value", BinaryType())
    with pytest.raises(OptionError, match="twice"):
        check_schema(doubled)


def test_null_or_not_does_not_matter() -> None:
    check_schema(StructType().add("value", BinaryType(), nullable=False))
