"""Rates, averages and largest values over the last two windows."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from headwater.client.metric_samples import WINDOW_S, Samples


def test_nothing_recorded() -> None:
    samples = Samples(0.0)
    assert samples.rate(10.0) == 0.0
    assert math.isnan(samples.average(10.0))
    assert math.isnan(samples.largest(10.0))


def test_a_rate_is_over_the_time_that_has_passed() -> None:
    samples = Samples(0.0)
    for second in range(10):
        samples.record(5.0, float(second))
    assert samples.rate(10.0) == 5.0
    assert samples.count_rate(10.0) == 1.0
    assert (samples.total, samples.total_count) == (50.0, 10)


def test_what_is_old_does_not_count_any_more() -> None:
    samples = Samples(0.0)
    samples.record(100.0, 1.0)
    samples.record(10.0, WINDOW_S + 1.0)
    assert samples.largest(WINDOW_S + 2.0) == 100.0
    assert samples.largest(2 * WINDOW_S + 2.0) == 10.0
    assert math.isnan(samples.largest(9 * WINDOW_S))
    assert samples.rate(9 * WINDOW_S) == 0.0
    assert samples.total == 110.0


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 40.0)), min_size=1))
def test_figures_agree_with_what_was_recorded_lately(values: list[tuple[float, float]]) -> None:
    samples = Samples(0.0)
    now_s = 0.0
    recorded = []
    for value, pause_s in values:
        now_s += pause_s
        samples.record(value, now_s)
        recorded.append((now_s, value))
    surely = [value for at_s, value in recorded if at_s > now_s - WINDOW_S]
    at_most = [value for at_s, value in recorded if at_s >= now_s - 2 * WINDOW_S]
    assert max(surely) <= samples.largest(now_s) <= max(at_most)
    assert min(at_most) <= samples.average(now_s) * 1.000001
    assert samples.average(now_s) <= max(at_most) * 1.000001


@given(st.lists(st.lists(st.floats(0.0, 100.0), min_size=1), min_size=1))
def test_several_at_once_are_as_one_after_the_other(groups: list[list[float]]) -> None:
    together, apart = Samples(0.0), Samples(0.0)
    for second, group in enumerate(groups):
        together.record_all(group, 10.0 * second)
        for value in group:
            apart.record(value, 10.0 * second)
    now_s = 10.0 * len(groups)
    assert together.total_count == apart.total_count
    assert together.largest(now_s) == apart.largest(now_s)
    assert math.isclose(together.total, apart.total, abs_tol=1e-9)
    assert math.isclose(together.average(now_s), apart.average(now_s), abs_tol=1e-9)
