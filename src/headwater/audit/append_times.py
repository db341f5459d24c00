"""When a partition's records came and were replicated, good to a second: points of time.

A batch does not say when it was appended, only when its records were made, and nothing says when it
was replicated. So the leader looks once a second where the log ends and where its high watermark
is, which costs appends nothing. A look that found nothing new is kept only if the next one does, as
the last time at which all was as before: so of two points that follow each other, what came between
them came in that time, however long they are apart.

The points are kept until what lies in front of them is counted, and are lost with the leader: of
what another leader took, this one does not know when it came.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from headwater.base.durations import LONG_MAX

#: With more than this every other point goes: then times are good to two seconds, or four.
_POINTS_MAX: Final = 1_024
#: So many are published with a stretch, spread evenly over those that there are.
PUBLISHED_POINTS_MAX: Final = 64


class AppendTimes:
    """Of one partition; the owner is the event loop."""

    def __init__(self, log_end_offset: int) -> None:
        #: Nothing is known of what lies in front.
        self._known_from = log_end_offset
        self._ends: list[int] = []
        self._watermarks: list[int] = []
        self._times_ms: list[int] = []
        #: When a look found what the last point says.
        self._quiet_ms: int | None = None

    def note(self, log_end_offset: int, high_watermark: int, now_ms: int) -> None:
        """The log ends there now, and is replicated up to there."""
        ends = self._ends
        if ends:
            if log_end_offset == ends[-1] and high_watermark == self._watermarks[-1]:
                self._quiet_ms = now_ms
                return
            if self._quiet_ms is not None:
                self._add(ends[-1], self._watermarks[-1], self._quiet_ms)
                self._quiet_ms = None
        self._add(log_end_offset, high_watermark, now_ms)
        if len(ends) > _POINTS_MAX:
            # Of two neighbours the later stays: a batch counts as no earlier than it came.
            for values in (ends, self._watermarks, self._times_ms):
                del values[0 : len(values) - 1 : 2]

    def _add(self, log_end_offset: int, high_watermark: int, time_ms: int) -> None:
        self._ends.append(log_end_offset)
        self._watermarks.append(high_watermark)
        self._times_ms.append(time_ms)

    def known_until(self, offset: int) -> tuple[int | None, int]:
        """When the record at `offset` had come at the latest, and up to where that holds."""
        if offset < self._known_from:
            return None, self._known_from
        number = bisect_right(self._ends, offset)
        if number == len(self._ends):
            return None, LONG_MAX
        return self._times_ms[number], self._ends[number]

    def points_until(self, offset: int) -> list[list[int]]:
        """Time, log end and high watermark, up to the first that has replicated all before it."""
        points: list[list[int]] = []
        for end, watermark, time_ms in zip(
            self._ends, self._watermarks, self._times_ms, strict=True
        ):
            points.append([time_ms, end, watermark])
            if watermark >= offset:
                break
        if len(points) <= PUBLISHED_POINTS_MAX:
            return points
        last = PUBLISHED_POINTS_MAX - 1
        return [points[number * (len(points) - 1) // last] for number in range(last + 1)]

    def drop_before(self, offset: int) -> None:
        """What lies in front of `offset` is counted."""
        if offset > self._known_from:
            # The last point in front of it stays: what comes next came after its time.
            number = max(bisect_right(self._ends, offset) - 1, 0)
            del self._ends[:number], self._watermarks[:number], self._times_ms[:number]
            self._known_from = offset
