"""Schemas are read without Spark, and what Spark takes is never refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.pipeline.declared.sections.ddl_schema import Column, SchemaError, parse_ddl

VALID = (
    "id STRING",
    "id: string, amount: double",
    "id STRING NOT NULL COMMENT 'the id', at TIMESTAMP",
    "`a b` INT, `tick``s` BIGINT",
    "items ARRAY<STRUCT<sku: STRING, price: DECIMAL(10, 2)>>",
    "m MAP<STRING, ARRAY<INT>>, s STRUCT<a: INT NOT NULL, b STRING COMMENT 'x'>",
    "i INTERVAL DAY TO SECOND, y INTERVAL YEAR",
    "c CHAR(3), v VARCHAR(10), d DEC(5), n NUMERIC(6,1)",
    "a BYTE, b SHORT, c LONG, d REAL, e TIMESTAMP_NTZ, f TIMESTAMP_LTZ, g BINARY, h DATE, i VOID",
    "v VARIANT, t STRING COLLATE UTF8_LCASE",
    "e STRUCT<>",
    "select INT, from STRING, time TIMESTAMP",
)
INVALID = {
    "id": (0, "'id' has no type; write it like 'id STRING'."),
    "id STRIN": (3, "'STRIN' is not a type: did you mean 'STRING'?"),
    "a INT b INT": (6, "a comma is expected after column 'a', not 'b'."),
    "a INT, A INT": (7, "column 'A' is in the schema twice."),
    "a ARRAY": (7, "ARRAY needs its inner types, such as ARRAY<STRING>."),
    "a MAP<INT>": (9, "a map needs two types, such as MAP<STRING, INT>."),
    "a STRUCT<b INT": (
        14,
        "a comma or '>' is expected after column 'b', but the schema ends.",
    ),
    "": (0, "a column's name is expected, but the schema ends."),
    "a INT,": (6, "a column's name is expected, but the schema ends."),
    "a `x": (2, "'`' has no end."),
    "a DECIMAL(5": (9, "'(' has no ')'."),
    "a ARRAY<INT": (11, "'>' is expected here, but the schema ends."),
}


def test_the_columns_of_a_schema() -> None:
    assert parse_ddl("id STRING NOT NULL, `a b`: array<int>, at timestamp") == (
        Column("id", "STRING"),
        Column("a b", "ARRAY"),
        Column("at", "TIMESTAMP"),
    )


@pytest.mark.parametrize("text", VALID)
def test_a_valid_schema_is_taken(text: str) -> None:
    assert parse_ddl(text)


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_schema_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SchemaError) as error:
        parse_ddl(text)
    assert (error.value.offset, error.value.sentence) == INVALID[text]


@given(st.text(alphabet="ab INTSRUCAYMP<>(),:`'\"5", max_size=60))
def test_any_text_is_a_schema_or_refused_inside_of_it(text: str) -> None:
    try:
        assert parse_ddl(text)
    except SchemaError as error:
        assert 0 <= error.offset <= len(text)


def test_nested_without_end_is_refused() -> None:
    with pytest.raises(SchemaError):
        parse_ddl("a " + "ARRAY<" * 5000)


def test_spark_agrees(spark: SparkSession) -> None:
    for text in VALID:
        parsed = StructType.fromDDL(text)
        assert isinstance(parsed, StructType)
        assert [column.name for column in parse_ddl(text)] == parsed.names
    for text in INVALID.keys() - {"a INT, A INT", "", "id"}:
        with pytest.raises(PySparkException):
            StructType.fromDDL(text)
