"""How fast logs may move from one directory of a broker to another.

All moves together keep to `replica.alter.log.dirs.io.max.bytes.per.second`, so that they leave the
disks to others. Pieces are no larger than what may be copied in a second; where there is no limit,
nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headwater.base.byte_rate import WINDOW_COUNT, WINDOW_MS, ByteRate
from headwater.base.clocks import Clock
from headwater.storage.directories.future_log import COPY_BYTES
from headwater.storage.log_config import LONG_MAX

#: How long a move pauses at once: the limit may be another before the time is over.
_PAUSE_MAX_MS: Final = 1_000.0


class MovePace:
    """Its owner is that of the directories."""

    def __init__(
        self,
        limit: Callable[[], int],
        clock: Clock,
        *,
        window_count: int = WINDOW_COUNT,
        window_ms: int = WINDOW_MS,
    ) -> None:
        """`limit` tells how many bytes a second there may be right now."""
        self._limit = limit
        self._clock = clock
        self._rate = ByteRate(window_count, window_ms)

    @property
    def piece_bytes(self) -> int:
        """How much to copy at a time."""
        return max(1, min(COPY_BYTES, self._limit()))

    def pause_ms(self) -> float:
        """How long to wait before the next piece; 0.0 if it may be copied now."""
        limit = self._limit()
        if limit == LONG_MAX:
            return 0.0
        wait_ms = self._rate.wait_ms(limit, self._clock.monotonic_ms())
        return min(wait_ms, _PAUSE_MAX_MS)

    def copied(self, size_bytes: int) -> None:
        """A piece was copied."""
        if size_bytes and self._limit() != LONG_MAX:
            self._rate.record(size_bytes, self._clock.monotonic_ms())
