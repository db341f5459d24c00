"""Which columns can be written, and which rows go to which topic and partition."""

from __future__ import annotations

from collections import defaultdict

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater.pipeline.sink.sink_errors import SinkRowError, SinkSchemaError
from headwater.pipeline.sink.sink_rows import check_schema, group_rows


def headers(name: str = "key") -> ArrayType:
    return ArrayType(StructType().add(name, StringType()).add("value", BinaryType()))


def schema(columns: dict[str, DataType]) -> StructType:
    fields = [StructField(name, kind) for name, kind in columns.items()]
    return StructType(fields)


TEXT, BYTES = StringType(), BinaryType()


@pytest.mark.parametrize(
    "columns",
    [
        {"value": BYTES},
        {"value": TEXT, "key": TEXT},
        {
            "topic": TEXT,
            "partition": IntegerType(),
            "key": BYTES,
            "value": BYTES,
            "headers": headers(),
            "timestamp": TimestampType(),
        },
    ],
)
def test_columns_that_can_be_written(columns: dict[str, DataType]) -> None:
    check_schema(schema(columns), topic="orders")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"key": TEXT}, "There is no column 'value', which is what is written; there is 'key'."),
        ({"value": IntegerType()}, "The column 'value' is int, but it must be binary or string."),
        ({"value": TEXT, "partition": LongType()}, "'partition' is bigint, but it must be int."),
        ({"value": TEXT, "topic": BYTES}, "The column 'topic' is binary, but it must be string."),
        ({"value": TEXT, "headers": TEXT}, "'headers' is string, but it must be array<"),
        (
            {"value": TEXT, "headers": headers("name")},
            "but it must be array<struct<key: string, value: binary>>",
        ),
        ({"value": TEXT, "kye": TEXT}, "The column 'kye' cannot be.*did you mean 'key'?"),
        ({"value": TEXT, "offset": LongType()}, "select those to write, or put it into 'value'."),
    ],
)
def test_columns_that_cannot(columns: dict[str, DataType], problem: str) -> None:
    with pytest.raises(SinkSchemaError, match=problem):
        check_schema(schema(columns), topic="orders")


def test_a_topic_has_to_come_from_somewhere() -> None:
    with pytest.raises(SinkSchemaError, match="give the option 'topic', or the rows a column"):
        check_schema(schema({"value": TEXT}), topic=None)
    check_schema(schema({"value": TEXT, "topic": TEXT}), topic=None)


def test_a_row_without_a_topic_is_refused() -> None:
    batch = pyarrow.record_batch({"topic": ["orders", None], "value": [b"1", b"2"]})
    with pytest.raises(SinkRowError, match="null in the column 'topic'"):
        list(group_rows(batch, None))
    assert [group.topic for group in group_rows(batch, "payments")] == ["payments"]


rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), st.integers(0, 3)))
)


@given(rows, st.sampled_from([None, "one"]), st.booleans())
def test_every_row_goes_where_it_says_and_order_is_kept(
    places: list[tuple[str, int | None]], topic: str | None, has_partitions: bool
) -> None:
    columns: dict[str, pyarrow.Array] = {
        "topic": pyarrow.array([place[0] for place in places], pyarrow.string()),
        "value": pyarrow.array([b"%d" % n for n in range(len(places))], pyarrow.binary()),
    }
    if has_partitions:
        columns["partition"] = pyarrow.array([place[1] for place in places], pyarrow.int32())
    expected: dict[tuple[str, int | None], list[bytes]] = defaultdict(list)
    for number, (name, partition) in enumerate(places):
        expected[topic or name, partition if has_partitions else None].append(b"%d" % number)
    found: dict[tuple[str, int | None], list[bytes]] = defaultdict(list)
    for group in group_rows(pyarrow.record_batch(columns), topic):
        assert group.rows.schema.names == ["value"]
        found[group.topic, group.partition] += group.rows.column("value").to_pylist()
    assert found == expected
