"""Values of all kinds through Spark's parsers, against a judgement in plain Python."""

import csv
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.pipeline.compiled.coding.avro_coding import encode_record
from headwater.pipeline.compiled.coding.avro_types import avro_schema
from headwater.pipeline.compiled.topic_source import TopicSource
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.source import SourceSpec

SCHEMA = "id BIGINT NOT NULL, name STRING, price DOUBLE, at TIMESTAMP, tags ARRAY<STRING>"
FLAT_SCHEMA = "id BIGINT NOT NULL, name STRING, price DOUBLE"
RECORD_SCHEMA = StructType([StructField("number", LongType()), StructField("value", BinaryType())])
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class GivenRecords(TopicSource):
    """A source whose records are given instead of read."""

    def __init__(self, source: SourceSpec, spark: SparkSession) -> None:
        spec = PipelineSpec("p", "b:1", (source,), (), (), Path("state"))
        super().__init__(spec, source, spark, streaming=False)

    def judged(self, values: list[bytes | None]) -> list[tuple[dict[str, Any] | None, str | None]]:
        """Row and problem of each value, in their order."""
        frame: DataFrame = self._spark.createDataFrame(list(enumerate(values)), RECORD_SCHEMA)
        rows = self._judged(frame).collect()
        found: dict[int, tuple[dict[str, Any] | None, str | None]] = {}
        for row in rows:
            decoded = None if row[3] is not None else row[2].asDict(recursive=True)
            found[row[0]] = (decoded, row[3])
        return [found[number] for number in range(len(values))]


def _order(generator: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": generator.choice([None, "", "plain", 'with "quotes", and commas', "ünï"]),
        "price": generator.choice([None, 0.0, -1.5, 1e300, generator.random()]),
        "at": EPOCH + timedelta(milliseconds=generator.randrange(10**9)),
        "tags": generator.choice([None, [], ["a", "b"], [""]]),
    }


def _naive(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """As Spark hands it out in a session in UTC: without the zone."""
    if row is None:
        return None
    return {
        name: value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


BAD_JSON: list[tuple[bytes | None, str]] = [
    (None, "no value"),
    (b"", "empty"),
    (b"  ", "empty"),
    (b"\xff\xfe", "UTF-8"),
    (b'{"id": 1, "name": "\xff"}', "UTF-8"),
    (b"plain text", "not JSON"),
    (b'{"id": 1, "na', "not JSON"),
    (b'{"id": 1} trailing', "not JSON"),
    (b'{"id": 1}}', "not JSON"),
    (b'{"id": 1}{"id": 2}', "not JSON"),
    (b'{"id": 1},{"id": 2}', "not JSON"),
    (b"{'id': 1}", "not JSON"),
    (b'{"id": 1,}', "not JSON"),
    (b'{"id": 01}', "not JSON"),
    (b'[{"id": 1}]', "not JSON"),
    (b"null", "not JSON"),
    (b"5", "not JSON"),
    (b'{"id": "x"}', "not JSON"),
    (b'{"id": 1.5}', "not JSON"),
    (b'{"id": 99999999999999999999}', "not JSON"),
    (b'{"id": 1, "price": NaN}', "not JSON"),
    (b'{"id": 1, "price": "1"}', "not JSON"),
    (b'{"id": 1, "at": "soon"}', "not JSON"),
    (b'{"id": 1, "tags": "a"}', "not JSON"),
    (b"{}", "'id' is missing"),
    (b'{"id": null}', "'id' is missing"),
    (b'{"name": "x"}', "'id' is missing"),
]


def test_json_is_read_strictly(spark: SparkSession) -> None:
    generator = random.Random(8)
    orders = [_order(generator, number) for number in range(200)]
    values: list[bytes | None] = [
        json.dumps({**order, "at": order["at"].isoformat()}).encode() for order in orders
    ]
    expected: list[tuple[dict[str, Any] | None, str]] = [(_naive(order), "") for order in orders]
    # Other fields are no business of the schema, and of two with one name the last counts.
    values.append(b' {"id": 1, "id": 2, "more": {"x": [1]}}\n')
    expected.append(({"id": 2, "name": None, "price": None, "at": None, "tags": None}, ""))
    values += [value for value, _ in BAD_JSON]
    expected += [(None, part) for _, part in BAD_JSON]
    source = SourceSpec("orders", topics=("orders",), format="json", schema=SCHEMA)
    for value, found, (row, part) in zip(
        values, GivenRecords(source, spark).judged(values), expected, strict=True
    ):
        assert found[0] == row, value
        assert part in (found[1] or ""), value


def test_parts_of_a_row_that_must_be_there_are_looked_for_inside_it(spark: SparkSession) -> None:
    schema = (
        "who STRUCT<name: STRING NOT NULL, age: INT>, "
        "lines ARRAY<STRUCT<product: STRING NOT NULL, count: INT>>, shelf MAP<STRING, INT>"
    )
    source = SourceSpec("orders", topics=("orders",), format="json", schema=schema)
    values: list[bytes | None] = [
        b'{"who": {"age": 3}}',
        b'{"who": null, "lines": null}',
        b'{"lines": [{"product": "a"}, {"count": 2}]}',
        b'{"lines": [{"product": "a"}], "shelf": {"x": null}}',
    ]
    problems = [problem for _, problem in GivenRecords(source, spark).judged(values)]
    assert problems == [
        "the field 'who.name' is missing or null",
        None,
        "the field 'lines[].product' is missing or null",
        None,
    ]


def _csv_line(order: dict[str, Any]) -> bytes:
    text = io.StringIO()
    cells = ["" if order[name] is None else order[name] for name in ("id", "name", "price")]
    csv.writer(text, delimiter=";").writerow(cells)
    return text.getvalue().rstrip("\r\n").encode()


def test_csv_is_read_strictly(spark: SparkSession) -> None:
    generator = random.Random(9)
    orders = [_order(generator, number) for number in range(100)]
    good: list[bytes | None] = [_csv_line(order) for order in orders]
    bad: list[tuple[bytes | None, str]] = [
        (None, "no value"),
        (b"", "empty"),
        (b"1;x", "not a line of CSV"),
        (b"1;x;2;3", "not a line of CSV"),
        (b"one;x;2", "not a line of CSV"),
        (b";x;2", "'id' is missing"),
        (b"1;\xff;2", "UTF-8"),
    ]
    source = SourceSpec(
        "orders", topics=("o",), format="csv", schema=FLAT_SCHEMA, format_options={"sep": ";"}
    )
    found = GivenRecords(source, spark).judged(good + [value for value, _ in bad])
    for order, (row, problem) in zip(orders, found, strict=False):
        # An empty cell and a null are one thing in CSV.
        name = order["name"] or None
        assert (row, problem) == ({"id": order["id"], "name": name, "price": order["price"]}, None)
    for (value, part), (row, problem) in zip(bad, found[len(good) :], strict=True):
        assert row is None, value
        assert part in (problem or ""), value


@pytest.mark.parametrize("header", [False, True])
def test_avro_is_read_strictly(spark: SparkSession, header: bool) -> None:
    fields = [
        StructField("id", LongType(), False),
        StructField("name", StringType()),
        StructField("price", DoubleType()),
        StructField("at", TimestampType()),
        StructField("tags", ArrayType(StringType())),
    ]
    schema = avro_schema(StructType(fields), "Order")
    generator = random.Random(10)
    orders = [_order(generator, number) for number in range(100)]
    prefix = b"\x00\x00\x00\x00\x2a" if header else b""
    values: list[bytes | None] = [prefix + encode_record(order, schema) for order in orders]
    whole = values[0]
    assert whole is not None
    bad = [None, b"", whole[:-1], whole + b"x", b"\x07" + whole]
    source = SourceSpec(
        "orders", topics=("o",), format="avro", avro_schema=schema, confluent_header=header
    )
    found = GivenRecords(source, spark).judged([*values, *bad])
    assert [row for row, _ in found[:100]] == [_naive(order) for order in orders]
    assert all(problem is None for _, problem in found[:100])
    assert all(row is None and problem for row, problem in found[100:])
