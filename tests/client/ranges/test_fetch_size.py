"""How much is asked for: enough for the range, and not much more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.client.ranges.fetch_size import FetchSize

MAX = 8 << 20


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**9))), st.integers(1, 10**9))
def test_sizes_have_bounds(fetches: list[tuple[int, int]], left: int) -> None:
    size = FetchSize(MAX)
    for fetch in fetches:
        size.learn(*fetch)
    assert min(64 << 10, MAX) <= size.next_bytes(left) <= MAX


def test_a_small_range_asks_for_little() -> None:
    assert FetchSize(MAX).next_bytes(10) == 64 << 10
    assert FetchSize(MAX).next_bytes(10**6) == MAX


def test_large_records_are_learned() -> None:
    size = FetchSize(MAX)
    size.learn(10, 1_000_000)
    assert 1_000_000 <= size.next_bytes(10) <= 1_500_000


def test_a_limit_below_the_usual_least_holds() -> None:
    assert FetchSize(1000).next_bytes(50) == 1000
