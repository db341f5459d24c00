"""Delays and moments as users give them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headwater.client.delay_times import delay_ms_of, due_ms_of, moment_ms_of


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        ("30s", 30_000),
        ("250ms", 250),
        ("17", 17),
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (timedelta(minutes=5), 300_000),
        # Never earlier than asked for.
        (timedelta(microseconds=1), 1),
    ],
)
def test_delays(given: Any, expected_ms: int) -> None:
    assert delay_ms_of(given) == expected_ms


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ("soon", ValueError, "no length of time"),
        ("-5s", ValueError, "no length of time"),
        (-1, ValueError, "must not be negative"),
        (timedelta(seconds=-1), ValueError, "must not be negative"),
        (2**63, ValueError, "later than any time"),
        (1.5, TypeError, "whole number of milliseconds"),
        (True, TypeError, "whole number of milliseconds"),
        (b"30s", TypeError, "whole number of milliseconds"),
    ],
)
def test_what_is_no_delay(given: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        delay_ms_of(given)


def test_moments() -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=timezone(timedelta(hours=2)))
    assert moment_ms_of(noon, "deliver_at") == 1_795_168_800_000
    assert moment_ms_of(1_795_168_800_000, "deliver_at") == 1_795_168_800_000
    assert moment_ms_of(datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "deliver_at") == 1


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        (datetime(2026, 11, 20), ValueError, "deliver_at .* no time zone"),
        (datetime(1969, 1, 1, tzinfo=UTC), ValueError, "must not be negative"),
        (-1, ValueError, "must not be negative"),
        (2**63, ValueError, "later than any time"),
        ("2026-11-20", TypeError, "must be a datetime"),
        (True, TypeError, "must be a datetime"),
    ],
)
def test_what_is_no_moment(given: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        moment_ms_of(given, "deliver_at")


def test_when_something_is_due() -> None:
    assert due_ms_of("1s", None, 500) == 1500
    assert due_ms_of(None, 7, 500) == 7
    with pytest.raises(ValueError, match="later than any time"):
        due_ms_of(2**63 - 1, None, 500)
    for delay, deliver_at in (("1s", 7), (None, None)):
        with pytest.raises(ValueError, match="either delay or deliver_at"):
            due_ms_of(delay, deliver_at, 500)
