from typing import TypeVar

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.client.columns.encoding.list_encoder import encode_records
from headwater.wire.records import Header, Record
from headwater.wire.records.record_section import encode_section
from tests.support.tiers import rounds
from tests.support.values.record_strategies import headers, nullable_bytes, timestamps


def oracle(
    times: list[int],
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    all_headers: list[list[Header]] | None,
) -> bytes:
    return encode_section(
        [
            Record(
                index,
                times[index],
                keys[index] if keys else None,
                value,
                tuple(all_headers[index]) if all_headers else (),
            )
            for index, value in enumerate(values)
        ],
        0,
        times[0] if times else 0,
    )


Batch = tuple[list[int], list[bytes | None] | None, list[bytes | None], list[list[Header]] | None]
T = TypeVar("T")


@st.composite
def repeated(draw: st.DrawFn, elements: st.SearchStrategy[T], count: int) -> list[T]:
    """A few elements over and over: in turns, or one after the other."""
    some = draw(st.lists(elements, min_size=1, max_size=3))
    in_turns = (some * count)[:count]
    return in_turns if draw(st.booleans()) else sorted(in_turns, key=some.index)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    count = draw(st.integers(0, 5) | st.integers(14, 140))
    return (
        draw(repeated(timestamps, count)),
        draw(st.none() | repeated(nullable_bytes, count)),
        draw(repeated(nullable_bytes, count)),
        draw(st.none() | repeated(headers, count)),
    )


@settings(max_examples=rounds(60, 1000), deadline=None)
@given(batches())
@example(([7] * 8300, None, [b"v"] * 8300, None))
@example(([7] * 8300, None, [b"v", b"vv"] * 4150, None))
@example(([7, 8] * 4150, [b"k", None] * 4150, [b"v", b"vv"] * 4150, None))
def test_makes_what_the_plain_encoder_makes(batch: Batch) -> None:
    assert encode_records(*batch) == oracle(*batch)


def test_large_values_have_long_lengths() -> None:
    for size in (8191, 8192, (1 << 20) - 1, 1 << 20):
        values: list[bytes | None] = [b"x" * size] * 2
        assert encode_records([1, 2], None, values, None) == oracle([1, 2], None, values, None)
        mixed = [*values, b"y"]
        assert encode_records([1, 2, 3], [*values, b"k"], mixed, None) == oracle(
            [1, 2, 3], [*values, b"k"], mixed, None
        )
