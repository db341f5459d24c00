"""Delays and moments as users give them: `"30s"`, a timedelta, a datetime, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from headwater.base.durations import LONG_MAX, parse_duration_ms

#: Text such as `30s` or `5m`, a timedelta, or a number of milliseconds.
DelayLike: TypeAlias = str | timedelta | int
#: A datetime with a time zone, or milliseconds since 1970.
MomentLike: TypeAlias = datetime | int

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def delay_ms_of(delay: DelayLike, what: str = "delay") -> int:
    """The milliseconds; `TypeError` or `ValueError`, with a sentence, if there are none."""
    if isinstance(delay, str):
        return parse_duration_ms(delay)
    if isinstance(delay, timedelta):
        # Never earlier than asked for.
        return _checked(-(-delay // _MILLISECOND), what, delay)
    if isinstance(delay, int) and not isinstance(delay, bool):
        return _checked(delay, what, delay)
    raise TypeError(
        f"{what} cannot be {delay!r}: it must be text such as '30s', a timedelta, or a whole "
        "number of milliseconds."
    )


def moment_ms_of(moment: MomentLike, what: str) -> int:
    """Milliseconds since 1970; `TypeError` or `ValueError`, with a sentence, if there are none."""
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise ValueError(
                f"{what} cannot be {moment!r}: it has no time zone, as in "
                "datetime(2026, 11, 20, 10, tzinfo=UTC)."
            )
        return _checked(-(-(moment - _EPOCH) // _MILLISECOND), what, moment)
    if isinstance(moment, int) and not isinstance(moment, bool):
        return _checked(moment, what, moment)
    raise TypeError(
        f"{what} cannot be {moment!r}: it must be a datetime or a whole number of milliseconds "
        "since 1970."
    )


def due_ms_of(delay: DelayLike | None, deliver_at: MomentLike | None, now_ms: int) -> int:
    """When something is due that comes so much later, or at that time."""
    if (delay is None) == (deliver_at is None):
        raise ValueError("Give either delay or deliver_at: a length of time, or a moment.")
    if deliver_at is not None:
        return moment_ms_of(deliver_at, "deliver_at")
    # One of the two is there.
    return _checked(now_ms + delay_ms_of(delay if delay is not None else 0), "delay", delay)


def _checked(time_ms: int, what: str, given: object) -> int:
    if time_ms < 0:
        raise ValueError(f"{what} cannot be {given!r}: it must not be negative.")
    if time_ms > LONG_MAX:
        raise ValueError(f"{what} cannot be {given!r}: it is later than any time there is.")
    return time_ms
