import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.lake.errors import LakeDamagedError, LakeSchemaError
from headwater.pipeline.lake.table.schema_json import (
    normal_schema,
    schema_from_json,
    schema_to_json,
)

PLAIN = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.date32(),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.timestamp("ns"),
    pa.decimal128(10, 2),
    pa.dictionary(pa.int32(), pa.string()),
]
TYPES = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.tuples(st.sampled_from([pa.string(), pa.int64()]), inner).map(lambda two: pa.map_(*two)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda some: pa.struct([(f"f{number}", kind) for number, kind in enumerate(some)])
        ),
    ),
    max_leaves=5,
)


@given(st.lists(TYPES, min_size=1, max_size=4))
def test_a_schema_comes_back_from_its_json(types: list[pa.DataType]) -> None:
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(types)])
    normal = normal_schema(schema)
    assert normal_schema(normal).equals(normal)
    assert schema_from_json(json.loads(json.dumps(schema_to_json(normal)))).equals(normal)


def test_what_a_table_cannot_hold_is_refused() -> None:
    with pytest.raises(LakeSchemaError, match="'wait' is of type duration"):
        normal_schema(pa.schema([("wait", pa.duration("s"))]))
    with pytest.raises(LakeSchemaError, match="two columns 'a'"):
        normal_schema(pa.schema([("a", pa.int64()), ("a", pa.int64())]))
    with pytest.raises(LakeDamagedError, match="'colour' is not a type"):
        schema_from_json([{"name": "a", "type": "colour"}])
