import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from headwater.pipeline.compiled.coding.avro_types import AvroTypeError, avro_schema, spark_schema

_leaves = st.sampled_from(
    [
        t.BooleanType(),
        t.IntegerType(),
        t.LongType(),
        t.FloatType(),
        t.DoubleType(),
        t.BinaryType(),
        t.StringType(),
        t.DateType(),
        t.TimestampType(),
        t.TimestampNTZType(),
        t.DecimalType(12, 3),
    ]
)


def _structs(kinds: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.StructType]:
    def made(members: list[tuple[t.DataType, bool]]) -> t.StructType:
        fields = [t.StructField(f"f{n}", *member) for n, member in enumerate(members)]
        return t.StructType(fields)

    return st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4).map(made)


_kinds: st.SearchStrategy[t.DataType] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(t.ArrayType, inner, st.booleans()),
        st.builds(t.MapType, st.just(t.StringType()), inner, st.booleans()),
        _structs(inner),
    ),
    max_leaves=6,
)


@given(_structs(_kinds))
def test_columns_come_back_from_their_avro_schema(schema: t.StructType) -> None:
    assert spark_schema(avro_schema(schema, "orders-2")) == schema


def test_a_schema_as_people_write_it() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "Order",
            "namespace": "shop",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A"]}},
                {"name": "before", "type": ["State", "null"]},
                {"name": "token", "type": {"type": "fixed", "name": "Token", "size": 4}},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "lines", "type": {"type": "array", "items": ["null", "int"]}},
                {"name": "seen", "type": {"type": "string", "logicalType": "uuid"}},
            ],
        }
    )
    schema = spark_schema(text)
    assert schema.simpleString() == (
        "struct<id:bigint,state:string,before:string,token:binary,at:timestamp,"
        "lines:array<int>,seen:string>"
    )
    assert [each.nullable for each in schema.fields] == [False, False, True] + [False] * 4


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "is not JSON"),
        ('"string"', "must be that of a record"),
        (
            '{"type":"record","name":"A","fields":[{"name":"x","type":["int","string"]}]}',
            "the field 'x' is a union of several types",
        ),
        (
            '{"type":"record","name":"A","fields":[{"name":"x","type":["null","A"]}]}',
            "the field 'x' holds itself (A)",
        ),
        (
            '{"type":"record","name":"A","fields":[{"name":"x","type":"whole"}]}',
            "the field 'x' has the unknown type 'whole'",
        ),
    ],
)
def test_what_has_no_columns_is_refused_with_its_place(schema: str, sentence: str) -> None:
    with pytest.raises(AvroTypeError) as refusal:
        spark_schema(schema)
    assert sentence in str(refusal.value)


def test_a_column_that_avro_lacks_is_named() -> None:
    schema = t.StructType([t.StructField("spent", t.DayTimeIntervalType())])
    with pytest.raises(AvroTypeError, match="'spent'"):
        avro_schema(schema, "rows")
