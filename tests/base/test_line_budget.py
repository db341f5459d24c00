"""A few lines of a kind in a while, and how many were left out."""

from headwater.base.line_budget import LineBudget


def test_the_first_few_of_a_while_are_written_and_the_rest_is_counted() -> None:
    budget = LineBudget(2, 10.0)
    assert [budget.take(now_s) for now_s in (100.0, 101.0, 102.0, 109.9)] == [0, 0, None, None]
    assert [budget.take(now_s) for now_s in (110.0, 111.0, 112.0)] == [2, 0, None]
    assert budget.take(200.0) == 1
    assert budget.take(230.0) == 0


def test_a_clock_that_is_set_back_does_not_silence_the_log() -> None:
    budget = LineBudget(1, 10.0)
    assert budget.take(1_000_000.0) == 0
    assert budget.take(5.0) == 0
    assert budget.take(6.0) is None
