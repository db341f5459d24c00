"""The timers of a shard on a running broker: entries of the broker's timing wheel."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from headwater.base.clocks import Clock
from headwater.base.loop_timer import LoopTimer
from headwater.base.timing_wheel import TimerTaskEntry
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.timers import TimedOperation


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
            self.run(operation(self._clock.wall_ms()))

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
