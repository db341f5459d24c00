"""The clock of a simulated machine: the loop's virtual time, and a wall clock that may be wrong.

Monotonic time is the loop's. Wall time starts anywhere, runs a little fast or slow, and can be set,
as administrators and time daemons do.
"""

from __future__ import annotations

import asyncio
from typing import Final

#: 2023-11-14, when nothing that matters here happened.
START_WALL_MS: Final = 1_700_000_000_000


class SimulatedClock:
    """A `Clock` of one machine on a virtual loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        start_wall_ms: int = START_WALL_MS,
        drift: float = 0.0,
    ) -> None:
        self._loop = loop
        self._start_wall_ms = start_wall_ms
        self._wall_offset_ms: float = start_wall_ms
        #: How much faster than the loop's time the wall clock runs: 0.01 is one percent.
        self.drift = drift

    def wall_ms(self) -> int:
        return int(self._wall_offset_ms + self.monotonic_ms() * (1 + self.drift))

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000

    def shift_wall(self, ms: float) -> None:
        """Set the wall clock, forwards or backwards; monotonic time does not notice."""
        self._wall_offset_ms += ms

    def set_right(self) -> None:
        """Undo every shift, as a time daemon does in the end."""
        self._wall_offset_ms = self._start_wall_ms
