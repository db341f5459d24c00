"""When the breaker of a retry topic's partition is open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.storage.breaker import Breaker
from headwater.storage.log_config import BreakerRules

RULES = BreakerRules(letters=3, window_ms=100)


def test_it_opens_for_a_window_when_so_many_are_given_up_within_one() -> None:
    breaker = Breaker()
    breaker.add(2, RULES, 1000)
    assert not breaker.is_open(RULES, 1000)
    # A window later the first ones do not count any more.
    breaker.add(2, RULES, 1100)
    assert not breaker.is_open(RULES, 1100)
    breaker.add(1, RULES, 1150)
    assert breaker.is_open(RULES, 1150)
    assert breaker.is_open(RULES, 1249)
    assert not breaker.is_open(RULES, 1250)


@pytest.mark.parametrize("begin_ms", range(1000, 1100, 7))
def test_a_burst_is_noticed_wherever_it_lies(begin_ms: int) -> None:
    breaker = Breaker()
    breaker.add(1, RULES, 1000)
    for late_ms in (0, 40, 80):
        breaker.add(1, RULES, begin_ms + 60 + late_ms)
    assert breaker.is_open(RULES, begin_ms + 140)


def test_what_was_counted_once_does_not_open_it_again() -> None:
    breaker = Breaker()
    breaker.add(3, RULES, 1000)
    breaker.add(1, RULES, 1100)
    assert not breaker.is_open(RULES, 1100)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3)), max_size=200),
    st.integers(1, 20),
    st.integers(1, 1000),
)
def test_it_knows_any_window_in_little_room(
    gaps: list[tuple[int, int]], letters: int, window_ms: int
) -> None:
    rules = BreakerRules(letters, window_ms)
    breaker, came, now_ms = Breaker(), list[int](), 1000

    def within(span_ms: float) -> int:
        return sum(now_ms - at_ms < span_ms for at_ms in came)

    must_until_ms = may_until_ms = 0
    for gap_ms, count in gaps:
        now_ms += gap_ms
        breaker.add(count, rules, now_ms)
        came += [now_ms] * count
        if within(window_ms) >= letters:
            may_until_ms = now_ms + window_ms
        # What came together in a part of a window is forgotten together.
        if within(window_ms - window_ms // 64) >= letters:
            must_until_ms = now_ms + window_ms
        assert (now_ms < must_until_ms) <= breaker.is_open(rules, now_ms) <= (now_ms < may_until_ms)
        assert len(breaker._parts) <= 130


def test_it_stays_open_while_as_many_come_again() -> None:
    breaker = Breaker()
    breaker.add(3, RULES, 1000)
    breaker.add(3, RULES, 1090)
    assert breaker.is_open(RULES, 1150)
    assert not breaker.is_open(RULES, 1190)


def test_a_clock_that_is_set_back_a_little_loses_no_count() -> None:
    breaker = Breaker()
    breaker.add(2, RULES, 1000)
    breaker.add(1, RULES, 995)
    assert breaker.is_open(RULES, 995)


def test_a_clock_that_is_set_back_does_not_keep_it_open() -> None:
    breaker = Breaker()
    breaker.add(3, RULES, 1_000_000)
    assert not breaker.is_open(RULES, 5000)
    breaker.add(3, RULES, 5000)
    assert breaker.is_open(RULES, 5050)


def test_it_can_be_switched_off() -> None:
    breaker = Breaker()
    off = RULES._replace(letters=0)
    breaker.add(1000, off, 1000)
    assert not breaker.is_open(off, 1000)
