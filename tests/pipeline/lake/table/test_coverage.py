import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.pipeline.lake.errors import LakeOverlapError
from headwater.pipeline.lake.table.coverage import OffsetRange, gaps, with_ranges

ONE = TopicPartition("t", 0)


def covered(start: int, end: int) -> OffsetRange:
    return OffsetRange("t", 0, start, end, end - start)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_ranges_cover_what_a_set_of_offsets_would(drawn: list[tuple[int, int]]) -> None:
    offsets: set[int] = set()
    coverage: dict[TopicPartition, tuple[OffsetRange, ...]] = {}
    for start, length in drawn:
        new = set(range(start, start + length))
        if new & offsets:
            with pytest.raises(LakeOverlapError):
                with_ranges(coverage, [covered(start, start + length)])
        else:
            coverage = with_ranges(coverage, [covered(start, start + length)])
            offsets |= new
    ranges = coverage.get(ONE, ())
    assert {offset for each in ranges for offset in range(each.start, each.end)} == offsets
    assert sum(each.row_count for each in ranges) == len(offsets)
    missing = {offset for start, end in gaps(ranges) for offset in range(start, end)}
    whole = set(range(min(offsets, default=0), max(offsets, default=-1) + 1))
    assert missing == whole - offsets
    # Ranges that meet are one.
    assert len(ranges) == len(gaps(ranges)) + bool(ranges)


def test_an_overlap_is_told_with_its_offsets() -> None:
    coverage = with_ranges({}, [covered(0, 10)])
    with pytest.raises(LakeOverlapError, match=r"Offsets 5 to 9 of t-0 are in the table already"):
        with_ranges(coverage, [covered(5, 20)])
