"""Views of fields in received bytes equal the fields, wherever they stand and however long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.client.columns.arrow.field_views import FieldPlaces, field_copies, field_views
from tests.support.tiers import rounds

Field = bytes | None

#: Twelve bytes are the most that stand in a view.
fields = st.none() | st.binary(max_size=3) | st.binary(min_size=10, max_size=15)
parts = st.lists(
    st.tuples(st.lists(st.tuples(fields, st.binary(max_size=14)), max_size=6), st.booleans()),
    min_size=1,
    max_size=4,
)

Make = Callable[[object, Sequence[FieldPlaces]], pa.Array]


def places_of(
    given_parts: list[tuple[list[tuple[Field, bytes]], bool]],
) -> tuple[list[FieldPlaces], list[Field]]:
    """The parts in buffers, each in one of its own or in that of the part before it."""
    data = b""
    buffers: list[list[FieldPlaces]] = []
    expected: list[Field] = []
    for rows, has_own_buffer in given_parts:
        if has_own_buffer or not buffers:
            data = b""
            buffers.append([])
        starts, sizes = [], []
        for field, gap in rows:
            data += gap
            starts.append(len(data))
            sizes.append(-1 if field is None else len(field))
            data += field or b""
            expected.append(field)
        part = FieldPlaces(data, np.array(starts, np.int64), np.array(sizes, np.int64))
        # All parts of a buffer have the whole of it.
        buffers[-1] = [each._replace(data=data) for each in (*buffers[-1], part)]
    return [part for buffer in buffers for part in buffer], expected


@pytest.mark.parametrize("make", [field_views, field_copies])
@settings(max_examples=rounds(200, 5_000), deadline=None)
@example([([(b"x" * 13, b"")], True), ([(b"y" * 13, b"")], True)])
@example([([(b"", b""), (None, b""), (b"x" * 12, b"")], True)])
@given(parts)
def test_every_field_is_as_it_was_received(
    make: Make, given_parts: list[tuple[list[tuple[Field, bytes]], bool]]
) -> None:
    places, expected = places_of(given_parts)
    found = make(pa, places)
    found.validate(full=True)
    assert found.to_pylist() == expected


@settings(max_examples=rounds(50, 1_000), deadline=None)
@given(parts)
def test_views_can_be_compared(given_parts: list[tuple[list[tuple[Field, bytes]], bool]]) -> None:
    """The first bytes of long fields and what follows short ones must be right for that."""
    places, expected = places_of(given_parts)
    assert field_views(pa, places).equals(pa.array(expected, pa.binary_view()))


def test_views_keep_what_they_show_from_being_received_over() -> None:
    data = bytearray(b"-a field of some length-")
    place = FieldPlaces(memoryview(data), np.array([1]), np.array([22]))
    views = field_views(pa, [place])
    with pytest.raises(BufferError):
        data.append(0)
    assert views.to_pylist() == [b"a field of some length"]
    del views, place
    data.append(0)
