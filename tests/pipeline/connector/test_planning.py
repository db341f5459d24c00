"""Shares, ranges and limits: nothing is read twice or left out, and nobody starves."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_ranges import OffsetRange, ranges_between, split_ranges
from headwater.pipeline.connector.read_limit import BatchGate, limited_ends, new_offset_count
from headwater.pipeline.connector.shares import proportional_shares

OFFSET_MAX = 2**63 - 1

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 4))
sizes = st.dictionaries(partitions, st.integers(1, 2**62), max_size=8)
small_sizes = st.dictionaries(partitions, st.integers(1, 60), min_size=1, max_size=8)


@st.composite
def positions_with_ends(
    draw: st.DrawFn,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    starts = draw(st.dictionaries(partitions, st.integers(0, 2**61), max_size=8))
    ends = {each: start + draw(st.integers(-3, 2**61)) for each, start in starts.items()}
    return starts, ends


@given(sizes, st.integers(0, OFFSET_MAX))
def test_shares_sum_to_what_is_divided(sizes: dict[TopicPartition, int], total: int) -> None:
    shares = proportional_shares(sizes, total)
    assert shares.keys() == sizes.keys()
    assert all(1 <= shares[each] <= size for each, size in sizes.items())
    assert sum(shares.values()) == min(max(total, len(sizes)), sum(sizes.values()))


@given(sizes, st.integers(0, OFFSET_MAX))
def test_who_has_more_gets_no_less(sizes: dict[TopicPartition, int], total: int) -> None:
    shares = proportional_shares(sizes, total)
    for each in sizes:
        for other in sizes:
            if sizes[each] > sizes[other]:
                assert shares[each] >= shares[other]


@given(small_sizes, st.integers(0, 300))
def test_shares_are_in_proportion(sizes: dict[TopicPartition, int], total: int) -> None:
    """Off by two at most: one because of the least share, one because of rounding."""
    shares = proportional_shares(sizes, total)
    given_out = sum(shares.values())
    for each, size in sizes.items():
        exact = size * given_out / sum(sizes.values())
        assert abs(shares[each] - exact) <= 2 + len(sizes) * size / sum(sizes.values())


@given(
    st.lists(
        st.builds(
            lambda topic, partition, start, size: OffsetRange(
                topic, partition, start, start + size
            ),
            st.sampled_from("ab"),
            st.integers(0, 3),
            st.integers(0, 2**40),
            st.integers(-2, 500),
        ),
        max_size=6,
        unique_by=lambda each: each.topic_partition,
    ),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 200),
)
def test_pieces_cover_ranges_exactly(
    ranges: list[OffsetRange], count_min: int | None, size_max: int | None
) -> None:
    pieces = split_ranges(ranges, task_count_min=count_min, task_offsets_max=size_max)
    assert all(piece.size > 0 for piece in pieces)
    for each in ranges:
        own = [piece for piece in pieces if piece.topic_partition == each.topic_partition]
        if each.size <= 0:
            assert own == []
            continue
        assert (own[0].start, own[-1].end) == (each.start, each.end)
        assert all(left.end == right.start for left, right in pairwise(own))
        assert max(piece.size for piece in own) - min(piece.size for piece in own) <= 1
        if size_max is not None:
            assert max(piece.size for piece in own) <= size_max
    offset_count = sum(max(0, each.size) for each in ranges)
    if count_min is not None:
        assert len(pieces) >= min(count_min, offset_count)
    if count_min is None and size_max is None:
        assert len(pieces) == sum(each.size > 0 for each in ranges)


@given(positions_with_ends())
def test_ranges_are_in_order_and_hold_what_is_new(
    given_positions: tuple[dict[TopicPartition, int], dict[TopicPartition, int]],
) -> None:
    starts, ends = given_positions
    ranges = ranges_between(starts, ends)
    assert ranges == sorted(ranges)
    assert sum(each.size for each in ranges) == new_offset_count(starts, ends)


@given(positions_with_ends(), st.integers(1, 2**62))
def test_a_limit_takes_exactly_so_many_offsets(
    given_positions: tuple[dict[TopicPartition, int], dict[TopicPartition, int]], limit: int
) -> None:
    starts, ends = given_positions
    limited = limited_ends(starts, ends, limit)
    assert limited.keys() == ends.keys()
    busy = [each for each, end in ends.items() if starts[each] < end]
    assert new_offset_count(starts, limited) == min(
        max(limit, len(busy)), new_offset_count(starts, ends)
    )
    for each, end in limited.items():
        assert end <= ends[each]
        if each in busy:
            assert end > starts[each]


@given(st.dictionaries(partitions, st.integers(0, 300), min_size=1, max_size=6), st.integers(1, 50))
def test_a_limited_query_gets_to_the_end(ends: dict[TopicPartition, int], limit: int) -> None:
    position = dict.fromkeys(ends, 0)
    batch_count = 0
    while position != ends:
        following = limited_ends(position, ends, limit)
        assert all(position[each] <= following[each] for each in ends)
        assert following != position
        position = following
        batch_count += 1
    assert batch_count <= -(-sum(ends.values()) // limit) + len(ends)


def test_a_gate_opens_for_enough_offsets_or_after_a_time() -> None:
    gate = BatchGate(100, 1000)
    assert gate.is_open(1, 50_000), "the first batch does not wait"
    assert not gate.is_open(99, 50_500)
    assert gate.is_open(100, 50_600)
    assert not gate.is_open(99, 51_599)
    assert gate.is_open(0, 51_600)
    assert BatchGate(None, 1000).is_open(0, 0)
