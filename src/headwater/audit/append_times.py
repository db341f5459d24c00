"""When a partition's records came, good to a second: points of time and log end.

A batch does not say when it was appended, only when its records were made. So the leader looks once
a second where the log ends, which costs appends nothing. The points are kept until what lies in
front of them is counted, and are lost with the leader: of what another leader took, nobody knows
how late it was.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from headwater.base.durations import LONG_MAX

#: With more than this every other point goes: then times are good to two seconds, or four.
_POINTS_MAX: Final = 1_024


class AppendTimes:
    """Of one partition; the owner is the event loop."""

    def __init__(self, log_end_offset: int) -> None:
        #: Nothing is known of what lies in front.
        self._known_from = log_end_offset
        self._ends: list[int] = []
        self._times_ms: list[int] = []

    def note(self, log_end_offset: int, now_ms: int) -> None:
        """The log ends there now."""
        ends = self._ends
        last = ends[-1] if ends else self._known_from
        if log_end_offset > last:
            ends.append(log_end_offset)
            self._times_ms.append(now_ms)
            if len(ends) > _POINTS_MAX:
                # Of two neighbours the later stays: a batch counts as no earlier than it came.
                del ends[0::2], self._times_ms[0::2]

    def known_until(self, offset: int) -> tuple[int | None, int]:
        """When the record at `offset` had come at the latest, and up to where that holds."""
        if offset < self._known_from:
            return None, self._known_from
        number = bisect_right(self._ends, offset)
        if number == len(self._ends):
            return None, LONG_MAX
        return self._times_ms[number], self._ends[number]

    def drop_before(self, offset: int) -> None:
        """What lies in front of `offset` is counted."""
        if offset > self._known_from:
            number = bisect_right(self._ends, offset)
            del self._ends[:number], self._times_ms[:number]
            self._known_from = offset
