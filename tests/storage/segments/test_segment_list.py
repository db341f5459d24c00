"""The map from offsets to segments, against a plain search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.campaigns.logs import NOW_MS, new_disk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList

DISK = new_disk()
HANDLES = HandleCache(DISK, 4)
SEGMENTS = {
    base: LogSegment(DISK, HANDLES, "/data", base, LogConfig(), created_ms=NOW_MS)
    for base in range(40)
}

base_offset_lists = st.lists(st.integers(0, 39), min_size=1, max_size=8, unique=True)


def segments_at(*base_offsets: int) -> SegmentList:
    segments = SegmentList()
    for base_offset in base_offsets:
        segments.add(SEGMENTS[base_offset])
    return segments


@given(base_offset_lists, st.integers(-1, 41))
def test_the_segment_of_an_offset_is_the_last_that_starts_at_or_before_it(
    base_offsets: list[int], offset: int
) -> None:
    segments = segments_at(*base_offsets)
    ordered = sorted(base_offsets)
    number = segments.floor_number(offset)
    assert number == sum(base <= offset for base in ordered) - 1
    expected = ordered[max(number, 0) :]
    assert [segment.base_offset for segment in segments.from_offset(offset)] == expected
    found = segments.get(offset)
    assert (found.base_offset if found else None) == (offset if offset in ordered else None)


@given(base_offset_lists, st.data())
def test_segments_stay_sorted_however_they_come_and_go(
    base_offsets: list[int], data: st.DataObject
) -> None:
    segments = segments_at(*base_offsets)
    gone = data.draw(st.sampled_from(base_offsets))
    segments.remove(SEGMENTS[gone])
    left = sorted(set(base_offsets) - {gone})
    assert [segment.base_offset for segment in segments] == left
    assert len(segments) == len(left)
    assert [segment.base_offset for segment in segments.sealed] == left[:-1]
    if left:
        assert segments.active.base_offset == left[-1]


def test_what_follows_a_segment() -> None:
    segments = segments_at(0, 11, 23)
    following = [segments.next_base_offset(segment) for segment in segments]
    assert following == [11, 23, None]


def test_two_segments_at_one_offset_are_refused() -> None:
    segments = segments_at(0, 11)
    with pytest.raises(InvariantError):
        segments.add(SEGMENTS[11])
    with pytest.raises(InvariantError):
        segments.remove(SEGMENTS[12])
    assert [segment.base_offset for segment in segments] == [0, 11]
