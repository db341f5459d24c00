"""Lengths of time as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.durations import LONG_MAX, parse_duration_ms, show_duration


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("250", 250),
        ("250ms", 250),
        ("30s", 30_000),
        (" 5 m ", 300_000),
        ("10min", 600_000),
        ("2h", 7_200_000),
        ("40d", 3_456_000_000),
        (str(LONG_MAX), LONG_MAX),
    ],
)
def test_what_is_read(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    "text", ["", "soon", "-5s", "1.5s", "5 parsecs", "1e3", str(LONG_MAX + 1), "9" * 5000, "²s"]
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no length of time|is longer than any time"):
        parse_duration_ms(text)


def test_a_long_time_does_not_become_a_negative_one() -> None:
    with pytest.raises(ValueError, match="longer than any time"):
        parse_duration_ms(f"{LONG_MAX // 1000}h")


@given(st.integers(0, 10**12))
def test_what_is_shown_is_read_as_the_same(duration_ms: int) -> None:
    assert parse_duration_ms(show_duration(duration_ms)) == duration_ms
