"""Durations and moments as people write them: `10 seconds`, `1 hour 30 minutes`, `2 days ago`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from headwater.pipeline.declared.problems import suggestion

_UNITS_MS: Final = {
    "ms": 1,
    "millisecond": 1,
    "milliseconds": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "seconds": 1_000,
    "min": 60_000,
    "minute": 60_000,
    "minutes": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "hours": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "days": 86_400_000,
    "week": 604_800_000,
    "weeks": 604_800_000,
}
_PART: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)", re.ASCII)
#: From 1970-01-12 on: a number with fewer digits is a year or a date.
_EPOCH_MS: Final = re.compile(r"0|\d{9,15}", re.ASCII)
#: A thousand years; what is longer is a slip, and no later sum of times overflows.
DURATION_MS_MAX: Final = 1000 * 366 * 86_400_000


class DurationError(ValueError):
    """A sentence about a text that is not a duration or no moment."""


def parse_duration_ms(text: str) -> int:
    """The duration in milliseconds."""
    position, total_ms = 0, 0.0
    stripped = text.strip()
    if not stripped:
        raise DurationError("a duration is expected, such as '10 seconds'.")
    while position < len(stripped):
        match = _PART.match(stripped, position)
        if match is None:
            raise DurationError(f"{text!r} is not a duration; write it like '10 seconds'.")
        number, unit = match.groups()
        if not unit:
            raise DurationError(f"{text!r} has no unit; write it like '{number} seconds'.")
        if unit.lower() not in _UNITS_MS:
            advice = suggestion(unit, (name for name in _UNITS_MS if len(name) > 3))
            raise DurationError(f"{unit!r} is not a unit of time{advice}")
        total_ms += float(number) * _UNITS_MS[unit.lower()]
        position = match.end()
    if total_ms > DURATION_MS_MAX:
        raise DurationError(f"{text!r} is longer than a thousand years.")
    return round(total_ms)


def parse_moment_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of an ISO 8601 time (UTC unless it names a zone), `now`, a duration
    with `ago`, or those milliseconds themselves.
    """
    stripped = text.strip()
    if stripped.lower() == "now":
        return now_ms
    if stripped.lower().endswith(" ago"):
        return now_ms - parse_duration_ms(stripped[: -len(" ago")])
    if _EPOCH_MS.fullmatch(stripped):
        return int(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise DurationError(
            f"{text!r} is not a time; write it like '2026-01-31T12:00:00Z', '2 hours ago', 'now' "
            "or in milliseconds since 1970."
        ) from None
