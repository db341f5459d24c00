"""Writes of a shard that fail are answered late, and later each time.

Whoever hears that something could not be written asks again, many clients at once: a group whose
assignments cannot be stored is joined again by all of its members, only to fail again. While a
partition lacks in-sync replicas, or its disk is full, that turns a coordinator into a machine that
rebalances hundreds of times a second. So the first failure is told at once, since it may have been
the only one, and each one that follows waits longer, up to some seconds, until a write succeeds.
For the state machines a write that waits here is one whose replicas are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.loop_timer import LoopTimer
from headwater.base.timing_wheel import TimerTaskEntry

DELAY_MS_MIN: Final = 100
DELAY_MS_MAX: Final = 5_000
#: By then the longest delay is reached, whatever else happens.
_DOUBLINGS_MAX: Final = 10


class WriteBackoff:
    """The failures of one shard; its owner is the event loop."""

    def __init__(self, timer: LoopTimer) -> None:
        self._timer = timer
        self._failure_count = 0
        self._numbers = count()
        #: What is told later, in the order in which it failed.
        self._waiting: dict[int, tuple[TimerTaskEntry, Callable[[], None]]] = {}

    def succeeded(self) -> None:
        """A write is safe: what fails next is the first failure again."""
        self._failure_count = 0

    def fail(self, on_failed: Callable[[KafkaError], None], error: KafkaError) -> None:
        """Tell of a failure when its time has come."""
        delay_ms = self._next_delay_ms()
        if delay_ms == 0:
            on_failed(error)
            return
        number = next(self._numbers)

        def tell() -> None:
            del self._waiting[number]
            on_failed(error)

        self._waiting[number] = (self._timer.call_later(delay_ms, tell), tell)

    def close(self) -> None:
        """The shard is gone: whoever waits hears at once."""
        for entry, tell in list(self._waiting.values()):
            self._timer.cancel(entry)
            tell()

    def _next_delay_ms(self) -> int:
        doublings = min(self._failure_count - 1, _DOUBLINGS_MAX)
        self._failure_count += 1
        return 0 if doublings < 0 else min(DELAY_MS_MIN << doublings, DELAY_MS_MAX)
