"""A timing wheel that an event loop turns.

The loop has one timer of its own for the whole wheel, armed for the moment at which the wheel next
has something to do. So a hundred thousand parked requests cost the loop one entry, and cancelling
one of them, which is what becomes of most, costs a list removal.
"""

import asyncio
import logging
from collections.abc import Callable

from headwater.base.timer import TimingWheelTimer
from headwater.base.timing_wheel import TimerTaskEntry

_logger = logging.getLogger(__name__)


class LoopTimer:
    """Runs callbacks on the event loop after their delays; the owner is the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tick_ms: int = 1) -> None:
        self._loop = loop
        self._wheel = TimingWheelTimer(self._now_ms(), tick_ms)
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def __len__(self) -> int:
        return len(self._wheel)

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> TimerTaskEntry:
        """Call `callback` once, no earlier than in `delay_ms`."""
        # The clock's fraction of a millisecond counts too, or a task could be that much early.
        entry = self._wheel.add_at(self._now_ms() + delay_ms + 1, callback)
        self._arm()
        return entry

    def cancel(self, entry: TimerTaskEntry) -> bool:
        """Make sure that a task will not run; false when it ran or was cancelled before."""
        return self._wheel.cancel(entry)

    def close(self) -> None:
        """Run nothing any more."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _arm(self) -> None:
        next_ms = self._wheel.next_expiration_ms()
        if next_ms is None:
            return
        if self._armed is not None:
            if self._armed_ms <= next_ms:
                return
            self._armed.cancel()
        self._armed_ms = next_ms
        self._armed = self._loop.call_at(next_ms / 1000, self._advance)

    def _advance(self) -> None:
        self._armed = None
        try:
            # A loop's timer may fire a little early, by its clock's resolution.
            self._wheel.advance_to(max(self._now_ms(), self._armed_ms))
        except ExceptionGroup as failures:
            _logger.error("timer tasks failed: %s", failures, exc_info=failures)
        self._arm()
