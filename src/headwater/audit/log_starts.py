"""When the start of a partition's log moved: what lay in front of it was deleted by then.

The leader looks once a second, as it does for what came. A group that commits past a start later
than that has not had what was deleted; that is found out by whoever joins rows.
"""

from __future__ import annotations

from typing import Final

#: With more than this every other point goes: of deletions it is known somewhat later then.
_POINTS_MAX: Final = 64


class LogStarts:
    """Of one partition in one leader epoch; the owner is the event loop."""

    def __init__(self, log_start_offset: int) -> None:
        self._latest = log_start_offset
        #: Time and offset, where it moved since it was told last.
        self.untold: list[list[int]] = []

    def note(self, log_start_offset: int, now_ms: int) -> None:
        if log_start_offset == self._latest:
            return
        self._latest = log_start_offset
        self.untold.append([now_ms, log_start_offset])
        if len(self.untold) > _POINTS_MAX:
            del self.untold[0 : len(self.untold) - 1 : 2]

    def told(self, points: list[list[int]]) -> None:
        """These are published; others may have come meanwhile."""
        if points:
            self.untold = [point for point in self.untold if point[0] > points[-1][0]]
