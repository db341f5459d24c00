"""A steady pace for sending: so many records a second, however busy the program is meanwhile."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

#: Sleeping more often than this would cost more than it brings.
_SLEEP_S_MIN: Final = 0.001


class Pace:
    """Tells how many records are due; without a limit, always all that are left."""

    def __init__(self, records_per_second: float | None) -> None:
        self._per_second = records_per_second
        self._started_s = perf_counter()
        self._count = 0

    async def next(self) -> float:
        """Wait until the next record is due, and return when that was, by `perf_counter`."""
        if self._per_second is None:
            return perf_counter()
        due_s = self._started_s + self._count / self._per_second
        self._count += 1
        wait_s = due_s - perf_counter()
        if wait_s > _SLEEP_S_MIN:
            await asyncio.sleep(wait_s)
        return due_s
