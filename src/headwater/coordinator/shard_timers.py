"""The timers of a shard on a running broker: entries of the broker's timing wheel.

An operation that fails though nobody expected it is logged, and tried again: it concerns a group or
a transaction, of which the broker has many, and a member that is never given up would hold up the
others of its group for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.loop_timer import LoopTimer
from headwater.base.timing_wheel import TimerTaskEntry
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.timers import TimedOperation

_logger = logging.getLogger(__name__)

#: Before an operation that failed is tried again.
_RETRY_MS: Final = 500


class ShardTimers:
    """A shard's timers, on the broker's timing wheel."""

    def __init__(self, timer: LoopTimer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock
        self._entries: dict[Hashable, TimerTaskEntry] = {}
        self._is_closed = False
        self.run: Callable[[Outcome], None] = lambda _: None

    def schedule(self, key: Hashable, delay_ms: int, operation: TimedOperation) -> None:
        self.cancel(key)
        if self._is_closed:
            return

        def fire() -> None:
            del self._entries[key]
            try:
                outcome = operation(self._clock.wall_ms())
            except Exception:
                _logger.exception("A timer of a coordinator failed (%s); it is tried again", key)
                if key not in self._entries:
                    self.schedule(key, _RETRY_MS, operation)
                return
            self.run(outcome)

        self._entries[key] = self._timer.call_later(max(delay_ms, 0), fire)

    def cancel(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._timer.cancel(entry)

    def is_scheduled(self, key: Hashable) -> bool:
        return key in self._entries

    def close(self) -> None:
        self._is_closed = True
        for key in list(self._entries):
            self.cancel(key)
