"""Times as people say them: lengths such as `2.1 s`, `41 s`, `3 min 20 s`, and moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def said(duration_ms: int) -> str:
    """About two digits, which is what somebody takes in."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    if duration_ms < 10_000:
        return f"{duration_ms / 1000:.1f}".removesuffix(".0") + " s"
    seconds = round(duration_ms / 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(round((minutes * 60 + seconds) / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(hours / 24)} days"


def shown_moment(time_ms: int) -> str:
    """To the millisecond, in UTC."""
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        # After the year 9999.
        return str(time_ms)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
