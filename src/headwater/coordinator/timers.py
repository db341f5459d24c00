"""Timers of a coordinator's shard: operations that are due at a later time.

A timer has a key; setting it anew replaces what was set before. When it is due, its operation runs
as if a client had asked for it: it gets the time and returns an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from headwater.coordinator.outcome import Outcome

#: Gets the wall clock's time in milliseconds.
TimedOperation = Callable[[int], Outcome]


class Timers(Protocol):
    def schedule(self, key: Hashable, delay_ms: int, operation: TimedOperation) -> None:
        """Run `operation` once, in `delay_ms`; replaces the timer of the same key."""
        ...

    def cancel(self, key: Hashable) -> None:
        """Do not run it; nothing happens if there is no such timer."""
        ...

    def is_scheduled(self, key: Hashable) -> bool: ...
