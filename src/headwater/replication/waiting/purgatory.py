"""The purgatory: requests that wait for something to happen, or for their time to run out.

A produce request with acks=all waits for the in-sync replicas, a fetch request for enough bytes, a
DeleteRecords request for the replicas' low watermark. Such a `DelayedOperation` is parked under the
keys of whatever could complete it. The event, "partition orders-0 has grown", is a `check` of its
key; the timeout is an entry on the timing wheel. Whichever comes first completes the operation,
exactly once: then it leaves all its keys and the wheel.

Everything runs on the event loop, so nothing can slip in between asking an operation and parking
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

from headwater.base.checks import check
from headwater.base.loop_timer import LoopTimer
from headwater.base.timing_wheel import TimerTaskEntry

Key = TypeVar("Key", bound=Hashable)


class DelayedOperation(ABC, Generic[Key]):
    """Something that is done when its condition holds, or when its time is over.

    A subclass says how to ask (`try_complete`) and what to do then (`on_complete`).
    """

    __slots__ = ("_keys", "_purgatory", "_timer_entry", "is_completed")

    def __init__(self) -> None:
        self.is_completed = False
        self._purgatory: Purgatory[Key] | None = None
        self._keys: Collection[Key] = ()
        self._timer_entry: TimerTaskEntry | None = None

    @abstractmethod
    def try_complete(self, key: Key | None) -> bool:
        """Whether the condition holds; `key` says what has changed, None that nothing is known."""

    @abstractmethod
    def on_complete(self) -> None:
        """What is to be done at the end, in time or not; called once."""

    def on_expiration(self) -> None:
        """The time is over; `on_complete` follows."""

    def complete(self) -> bool:
        """End the wait, whatever the condition says; false if it had ended before."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self._purgatory is not None:
            self._purgatory.forget(self)
        self.on_complete()
        return True

    def cancel(self) -> None:
        """Nobody waits for it any more: it ends without being done."""
        if not self.is_completed:
            self.is_completed = True
            if self._purgatory is not None:
                self._purgatory.forget(self)


class Purgatory(Generic[Key]):
    """All parked operations of one kind."""

    def __init__(self, timer: LoopTimer) -> None:
        self._timer = timer
        self._watched: dict[Key, dict[DelayedOperation[Key], None]] = {}
        self._parked: dict[DelayedOperation[Key], None] = {}
        self.parked_count = 0
        self.expired_count = 0

    def __len__(self) -> int:
        """How many operations wait now."""
        return len(self._parked)

    def try_complete_else_park(
        self, operation: DelayedOperation[Key], timeout_ms: int, keys: Collection[Key]
    ) -> bool:
        """Complete it if its condition holds already; else it waits. Says whether it is done."""
        if operation.try_complete(None):
            operation.complete()
            return True
        if timeout_ms <= 0:
            self._expire(operation)
            return True
        self.park(operation, timeout_ms, keys)
        return False

    def park(
        self, operation: DelayedOperation[Key], timeout_ms: int, keys: Collection[Key]
    ) -> None:
        """Let it wait, without asking it first."""
        check(not operation.is_completed, "a completed operation cannot wait")
        check(operation not in self._parked, "an operation waits already")
        operation._purgatory = self
        operation._keys = keys
        self._parked[operation] = None
        self.parked_count += 1
        for key in keys:
            self._watched.setdefault(key, {})[operation] = None
        operation._timer_entry = self._timer.call_later(timeout_ms, lambda: self._expire(operation))

    def check(self, key: Key) -> int:
        """Something happened to `key`: complete whoever waited for that. Returns how many."""
        watchers = self._watched.get(key)
        if not watchers:
            return 0
        completed = 0
        for operation in list(watchers):
            if not operation.is_completed and operation.try_complete(key):
                completed += operation.complete()
        return completed

    def forget(self, operation: DelayedOperation[Key]) -> None:
        """An operation is complete: nothing is to remind of it."""
        self._parked.pop(operation, None)
        for key in operation._keys:
            watchers = self._watched.get(key)
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watched[key]
        if operation._timer_entry is not None:
            self._timer.cancel(operation._timer_entry)

    def complete_all(self) -> None:
        """The broker stops: everyone gets the answer that an expiration would give."""
        for operation in list(self._parked):
            self._expire(operation)

    def _expire(self, operation: DelayedOperation[Key]) -> None:
        if not operation.is_completed:
            self.expired_count += 1
            operation.on_expiration()
            operation.complete()
