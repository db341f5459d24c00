import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from headwater.pipeline.compiled.coding.bad_json import json_problem

SCHEMA = t.StructType(
    [
        t.StructField("id", t.LongType(), False),
        t.StructField("small", t.ByteType()),
        t.StructField("price", t.DoubleType()),
        t.StructField("paid", t.BooleanType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("day", t.DateType()),
        t.StructField("lines", t.ArrayType(t.StructType([t.StructField("n", t.IntegerType())]))),
        t.StructField("counts", t.MapType(t.StringType(), t.IntegerType())),
    ]
).json()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b'{"id": 1, "amo', "the value is not JSON: Unterminated string starting at character 10"),
        (b"plain text", "the value is not JSON: Expecting value at character 0"),
        (b'{"id": 1} more', "the value is not JSON: Extra data at character 10"),
        (b"\xff", "the value is not UTF-8"),
        (b'{"price": NaN}', "the value is not JSON: NaN is not a JSON number"),
        (b"[1]", "the value is a list, not a JSON object"),
        (b'"x"', "the value is a string, not a JSON object"),
        (b"7", "the value is a number, not a JSON object"),
        (b"null", "the value is null, not a JSON object"),
        (b'{"id": "x"}', "the field 'id' is not of type BIGINT: \"x\""),
        (b'{"id": 1.5}', "the field 'id' is not of type BIGINT: 1.5"),
        (b'{"id": true}', "the field 'id' is not of type BIGINT: true"),
        (b'{"small": 128}', "the field 'small' is not of type TINYINT: 128"),
        (b'{"price": "1"}', "the field 'price' is not of type DOUBLE: \"1\""),
        (b'{"paid": 1}', "the field 'paid' is not of type BOOLEAN: 1"),
        (b'{"at": "soon"}', "the field 'at' is not of type TIMESTAMP: \"soon\""),
        (b'{"day": "2026-13-01"}', "the field 'day' is not of type DATE: \"2026-13-01\""),
        (b'{"lines": 1}', "the field 'lines' is not a list: 1"),
        (b'{"lines": [{"n": 1}, {"n": "x"}]}', "the field 'lines[].n' is not of type INT: \"x\""),
        (b'{"counts": {"a": null, "b": []}}', "the field 'counts[]' is not of type INT: []"),
    ],
)
def test_what_is_wrong_is_told(value: bytes, problem: str) -> None:
    assert json_problem(value, SCHEMA) == problem


def test_a_good_value_has_no_problem() -> None:
    value = {"id": 1, "small": -128, "price": 1, "at": "2026-01-01T00:00:00Z", "day": "2026-01-01"}
    assert json_problem(json.dumps(value).encode(), SCHEMA) is None


@given(st.binary() | st.text().map(str.encode))
def test_whatever_comes_there_is_an_answer_of_one_line(value: bytes) -> None:
    problem = json_problem(value, SCHEMA)
    assert problem is None or "\n" not in problem
