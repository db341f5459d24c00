"""Rows of one size, beside what the encoder for any rows makes of them."""

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.client.columns.encoding.alike_rows import AlikeRows
from headwater.client.columns.encoding.arrow_encoder import encode_arrow

Section = tuple[int, bytes, int, int, int]


def sections(batch: pa.RecordBatch, section_bytes_max: int, memory: ReusedMemory) -> list[Section]:
    return [
        (number, bytes(section.data), *section[1:])
        for number, section in encode_arrow(
            batch,
            partition=None,
            partition_count=3,
            choose_partition=lambda: 7,
            section_bytes_max=section_bytes_max,
            now_ms=1_700_000_000_000,
            memory=memory,
        )
    ]


def fields(count: int, size: int, first: int) -> pa.Array:
    pattern = bytes(range(256)) * (size // 256 + 2)
    starts = [(first + 7 * number) % 256 for number in range(count)]
    return pa.array([pattern[start : start + size] for start in starts], pa.binary())


@given(
    count=st.integers(1, 300),
    value_size=st.integers(1, 200),
    key_size=st.none() | st.integers(1, 100),
    skipped=st.integers(0, 20),
    section_bytes_max=st.integers(1, 40_000),
)
# Numbers of places that take two and three bytes, and lengths that do.
@example(20_000, 1, None, 3, 1 << 20)
@example(9_000, 3, 64, 0, 1 << 20)
@example(500, 9_000, 8_192, 1, 1 << 20)
def test_any_encoder_makes_the_same_of_them(
    count: int, value_size: int, key_size: int | None, skipped: int, section_bytes_max: int
) -> None:
    columns = {"value": fields(count + skipped, value_size, 0)}
    if key_size is not None:
        columns["key"] = fields(count + skipped, key_size, 100)
    batch = pa.record_batch(columns).slice(skipped)
    memory = ReusedMemory(Kept(8 << 20, 16 << 20))
    found = sections(batch, section_bytes_max, memory)
    with patch.object(AlikeRows, "of", lambda keys, values: None):
        expected = sections(batch, section_bytes_max, memory)
    assert found == expected
    assert sum(section[2] for section in found) == count


@pytest.mark.parametrize(
    "values",
    [[b"a", b"bc"], [b"a", None], [None, None], [b"", b""], []],
    ids=["sizes differ", "one is null", "all are null", "empty", "none"],
)
def test_others_are_not_alike(values: list[bytes | None]) -> None:
    column = pa.array(values, pa.binary())
    alike = pa.array([b"x"] * len(values), pa.binary())
    assert AlikeRows.of(None, column) is None
    if values:
        assert AlikeRows.of(column, alike) is None
        assert AlikeRows.of(alike, alike) is not None


def test_sections_that_are_held_keep_their_bytes() -> None:
    memory = ReusedMemory(Kept(8 << 20, 16 << 20))

    def encode(letter: bytes) -> list[memoryview]:
        batch = pa.record_batch({"value": pa.array([letter * 1_000] * 500, pa.binary())})
        found = encode_arrow(
            batch,
            partition=0,
            partition_count=1,
            choose_partition=int,
            section_bytes_max=100_000,
            now_ms=1,
            memory=memory,
        )
        return [memoryview(section.data) for _, section in found]

    first = encode(b"a")
    copies = [bytes(each) for each in first]
    owners = {id(each.obj) for each in encode(b"b")}
    assert owners.isdisjoint(id(each.obj) for each in first)
    assert [bytes(each) for each in first] == copies
