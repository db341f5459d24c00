from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.lake.errors import LakeSchemaError
from headwater.pipeline.lake.writing.key_match import first_repeated, matching

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("window", pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.int32())])),
        ("name", pa.string()),
    ]
)
KEYS = st.fixed_dictionaries(
    {
        "id": st.one_of(st.none(), st.integers(0, 2)),
        "window": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {"start": st.one_of(st.none(), st.integers(0, 1)), "end": st.integers(0, 1)}
            ),
        ),
        "name": st.one_of(st.none(), st.sampled_from(["", "a"])),
    }
)
Rows = list[dict[str, Any]]


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@given(st.lists(KEYS, max_size=6), st.lists(st.lists(KEYS, max_size=6), max_size=3))
def test_keys_match_as_values_do(wanted: Rows, among: list[Rows]) -> None:
    found = matching(table(wanted), [table(rows) for rows in among])
    assert [each.tolist() for each in found] == [[row in wanted for row in rows] for rows in among]


@given(st.lists(KEYS, max_size=8))
def test_the_first_repeated_key_is_found(rows: Rows) -> None:
    expected = next((number for number, row in enumerate(rows) if row in rows[:number]), None)
    assert first_repeated(table(rows)) == expected


def test_lists_cannot_be_keys() -> None:
    with pytest.raises(LakeSchemaError, match="'tags' holds lists or maps"):
        first_repeated(pa.table({"tags": [["a"]]}))
