"""How late a level was, in figures."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.delivery.delay_service.level_figures import LevelFigures


@given(st.lists(st.integers(0, 10**7), min_size=1))
def test_percentiles_are_right_to_two_digits(lateness: list[int]) -> None:
    figures = LevelFigures()
    for each in lateness:
        figures.forwarded(each)
    found = figures.take_lateness()
    exact = sorted(lateness)
    for share, value in ((0.5, found.p50_ms), (0.99, found.p99_ms), (1.0, found.max_ms)):
        assert value is not None
        wanted = exact[max(0, -(-len(exact) * int(share * 100) // 100) - 1)]
        assert wanted <= value <= wanted * 1.1


def test_each_report_is_about_what_came_since_the_last() -> None:
    figures = LevelFigures()
    figures.forwarded(-3)
    assert figures.take_lateness() == (0, 0, 0)
    assert figures.take_lateness() == (None, None, None)
    assert figures.forwarded_count == 1
