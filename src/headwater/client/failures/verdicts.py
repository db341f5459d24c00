"""What a handler raises to say what shall become of its record."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final, TypeAlias

from headwater.base.durations import LONG_MAX, parse_duration_ms

#: Text such as `30s`, a number of seconds, or a timedelta.
AfterLike: TypeAlias = str | int | float | timedelta

_MILLISECOND: Final = timedelta(milliseconds=1)


class Retry(Exception):
    """The record shall be tried again, after this time or after that of the policy."""

    def __init__(self, reason: str = "", *, after: AfterLike | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after_ms = None if after is None else after_ms_of(after)


class DeadLetter(Exception):
    """The record shall not be tried again, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def after_ms_of(after: AfterLike) -> int:
    """The milliseconds; `TypeError` or `ValueError`, with a sentence, if there are none.

    A bare number is in seconds, as that of HTTP's Retry-After, which is where many come from.
    """
    if isinstance(after, str):
        return parse_duration_ms(after)
    if isinstance(after, timedelta):
        # Never earlier than asked for.
        after_ms = -(-after // _MILLISECOND)
    elif isinstance(after, int | float) and not isinstance(after, bool) and math.isfinite(after):
        after_ms = math.ceil(after * 1000)
    else:
        raise TypeError(
            f"after cannot be {after!r}: it must be text such as '30s', a number of seconds, or a "
            "timedelta."
        )
    if not 0 <= after_ms <= LONG_MAX:
        raise ValueError(f"after cannot be {after!r}: it must be a time that there is.")
    return after_ms
