"""Whether what is under way on a connection goes on, as far as it shows from time to time.

A peer that sends a byte a minute, or takes one, does not go on. So a watch gives a stretch of time
for each `PROGRESS_BYTES_MIN` bytes, or for the rest if that is less. It costs a connection nothing
but the look now and then.
"""

from __future__ import annotations

from typing import Final

PROGRESS_BYTES_MIN: Final = 16 * 1024


class ProgressWatch:
    """One direction of one connection."""

    __slots__ = ("_bytes", "_milestone", "_since_s")

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._bytes = 0
        self._milestone = 0

    def rest(self) -> None:
        """Nothing is under way, or it is not the peer's turn."""
        self._since_s = None

    def stalled_s(self, now_s: float, moved_bytes: int, milestone: int) -> float:
        """For how long it has not gone on.

        `moved_bytes` counts all that has ever moved; `milestone` changes with each request or
        answer that is complete.
        """
        is_moving = moved_bytes - self._bytes >= PROGRESS_BYTES_MIN or milestone != self._milestone
        if self._since_s is None or is_moving:
            self._since_s = now_s
            self._bytes = moved_bytes
            self._milestone = milestone
        return now_s - self._since_s
