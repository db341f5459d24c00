"""Durations and moments are read as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.declared.fields.durations import (
    DURATION_MS_MAX,
    DurationError,
    parse_duration_ms,
    parse_moment_ms,
)

NOW_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("500 ms", 500),
        ("10 seconds", 10_000),
        ("10s", 10_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1.5 minutes", 90_000),
        ("2 Days", 172_800_000),
        ("1 week", 604_800_000),
        ("0 seconds", 0),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("10", "'10' has no unit; write it like '10 seconds'."),
        ("10 minuts", "'minuts' is not a unit of time: did you mean 'minutes'?"),
        ("soon", "'soon' is not a duration; write it like '10 seconds'."),
        ("-1 second", "'-1 second' is not a duration; write it like '10 seconds'."),
        ("999999999999 weeks", "'999999999999 weeks' is longer than a thousand years."),
        (" ", "a duration is expected, such as '10 seconds'."),
    ],
)
def test_what_is_no_duration(text: str, sentence: str) -> None:
    with pytest.raises(DurationError) as error:
        parse_duration_ms(text)
    assert str(error.value) == sentence


@given(st.integers(0, DURATION_MS_MAX))
def test_every_number_of_milliseconds_is_read_exactly(duration_ms: int) -> None:
    days, rest_ms = divmod(duration_ms, 86_400_000)
    assert parse_duration_ms(f"{duration_ms} ms") == duration_ms
    assert parse_duration_ms(f"{days} days {rest_ms} ms") == duration_ms


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("2026-01-01", NOW_MS),
        ("2026-01-01T00:00:00Z", NOW_MS),
        ("2026-01-01T01:00:00+01:00", NOW_MS),
        ("2026-01-01 00:00:00.250", NOW_MS + 250),
        ("20260101", NOW_MS),
        (str(NOW_MS), NOW_MS),
        ("now", NOW_MS),
        ("2 hours ago", NOW_MS - 7_200_000),
        ("0", 0),
    ],
)
def test_moments(text: str, moment_ms: int) -> None:
    assert parse_moment_ms(text, NOW_MS) == moment_ms


@pytest.mark.parametrize("text", ["2026", "yesterday", "2026-13-01", "", "two hours ago"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(DurationError):
        parse_moment_ms(text, NOW_MS)


@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_moment_ms(text, NOW_MS), int)
    except DurationError as error:
        assert str(error)
