"""Ranges of offsets hold exactly what was sent, in chunks of which only the last one changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.delivery.redrive.tasks import offset_ranges
from headwater.delivery.redrive.tasks.offset_ranges import GrowingRanges, OffsetRanges, pairs


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 30), st.integers(1, 5))
def test_exactly_what_was_sent_is_in_the_ranges(
    sent: list[bool], batch: int, chunk_max: int
) -> None:
    """Each batch is written as a task does it, and now and then another runner takes over."""
    stored: dict[int, list[int]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_ranges, "CHUNK_RANGES_MAX", chunk_max)
        growing = GrowingRanges()
        for start in range(0, len(sent), batch):
            growing = growing.copy()
            for number in range(start, min(start + batch, len(sent))):
                # Every other offset is no letter.
                if sent[number]:
                    growing.sent(number * 2)
                else:
                    growing.passed_over()
            stored |= growing.chunks()
            if start % 3 == 0 and stored:
                growing = GrowingRanges(max(stored), stored[max(stored)])
    assert all(len(bounds) <= 2 * chunk_max for bounds in stored.values())
    ranges = OffsetRanges(each for bounds in stored.values() for each in pairs(bounds))
    assert [number * 2 in ranges for number in range(len(sent))] == sent


def test_what_goes_on_is_one_range_over_what_is_no_letter() -> None:
    growing = GrowingRanges()
    for offset in (0, 1, 3, 8):
        growing.sent(offset)
    assert growing.chunks() == {0: [0, 9]}
    copy = growing.copy()
    assert copy.chunks() == {}
    copy.sent(10)
    assert (copy.chunks(), growing.chunks()) == ({0: [0, 11]}, {0: [0, 9]})


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50))))
def test_ranges_of_several_tasks_are_joined(ranges: list[tuple[int, int]]) -> None:
    joined = OffsetRanges(ranges)
    wanted = {offset for first, end in ranges for offset in range(first, end)}
    assert {offset for offset in range(60) if offset in joined} == wanted
    assert bool(joined) == bool(wanted)
    found = list(joined)
    assert all(end < first for (_, end), (first, _) in pairwise(found))
