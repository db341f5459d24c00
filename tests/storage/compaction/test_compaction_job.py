"""Which segments become one."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from headwater.storage.compaction.compaction_filter import LastBatch
from headwater.storage.compaction.compaction_job import CompactionJob, SegmentExtent, group_segments
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from headwater.storage.log_config import LogConfig


def extents(*sizes: int, span: int = 10, index_bytes: int = 1) -> list[SegmentExtent]:
    return [
        SegmentExtent(number * span, (number + 1) * span, size, index_bytes, index_bytes)
        for number, size in enumerate(sizes)
    ]


def bases(groups: list[list[SegmentExtent]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_that_fit_together_are_joined() -> None:
    groups = group_segments(extents(40, 50, 20, 80, 0, 1), 100, 1_000)
    assert bases(groups) == [[0, 10], [20, 30, 40], [50]]


def test_a_segment_that_is_too_large_already_stays_alone() -> None:
    assert bases(group_segments(extents(500, 1, 500), 100, 1_000)) == [[0], [10], [20]]


def test_indexes_limit_a_group_too() -> None:
    segments = extents(1, 1, 1, 1, 1, index_bytes=20)
    assert bases(group_segments(segments, 1_000, 50)) == [[0, 10], [20, 30], [40]]


def test_offsets_stay_within_reach_of_the_base() -> None:
    span = RELATIVE_OFFSET_MAX // 2 + 1
    assert bases(group_segments(extents(1, 1, 1, span=span), 100, 100)) == [[0, span], [2 * span]]


@given(st.lists(st.integers(0, 120), max_size=30), st.integers(1, 100))
def test_groups_are_the_segments_in_order(sizes: list[int], segment_bytes: int) -> None:
    segments = extents(*sizes)
    groups = group_segments(segments, segment_bytes, 1_000)
    assert [segment for group in groups for segment in group] == segments
    for group in groups:
        assert len(group) == 1 or sum(each.size_bytes for each in group) <= segment_bytes


def test_a_job_survives_the_way_to_a_child() -> None:
    job = CompactionJob(
        directory="/log",
        config=LogConfig(),
        segments=tuple(extents(1, 2)),
        first_dirty_offset=0,
        end_offset=20,
        later_base_offsets=(20,),
        active_producers={1: LastBatch(0, None)},
        now_ms=5,
    )
    assert pickle.loads(pickle.dumps(job)) == job
