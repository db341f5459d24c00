"""A circuit breaker: when nearly everything fails, the cause is no record, and reading on is vain.

closed ---- too many of a window failed ----> open: nothing is read for a pause
  ^                                             |
  |                                             v  the pause is over
  '----- fewer fail ------------------------ probing: a few records are let through
                                                |
                 too many of them failed: open again, for twice as long
"""

from __future__ import annotations

from enum import Enum
from typing import Final

#: Fewer records say nothing.
WINDOW_RECORDS: Final = 50
PROBE_RECORDS: Final = 10
PAUSE_S_MAX: Final = 300.0


class CircuitState(Enum):
    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Circuit:
    """Not for two threads at a time."""

    def __init__(self, failure_ratio: float, pause_s: float) -> None:
        self._failure_ratio = failure_ratio
        self._first_pause_s = pause_s
        self._pause_s = pause_s
        self._until_s = 0.0
        self._good_count = 0
        self._bad_count = 0
        #: Of a probe: records that were let through and have no outcome yet; None before that.
        self._probed_count: int | None = None
        self.state = CircuitState.CLOSED
        self.opened_count = 0

    @property
    def pause_s(self) -> float:
        """How long it is open for."""
        return self._pause_s

    def add(self, good_count: int, bad_count: int, now_s: float) -> bool:
        """So many attempts went well and wrong; tells whether the circuit has opened for it."""
        if self.state is CircuitState.OPEN:
            # These were under way before.
            return False
        self._good_count += good_count
        self._bad_count += bad_count
        total_count = self._good_count + self._bad_count
        if self.state is CircuitState.PROBING:
            if self._probed_count is None or total_count < self._probed_count:
                return False
        elif total_count < WINDOW_RECORDS:
            return False
        if self._bad_count > self._failure_ratio * total_count:
            was_probing = self.state is CircuitState.PROBING
            self._open(now_s, 2 * self._pause_s if was_probing else self._first_pause_s)
            return True
        self.state = CircuitState.CLOSED
        self._forget()
        return False

    def holds(self, now_s: float) -> bool:
        """Whether nothing may be read now."""
        if self.state is CircuitState.OPEN and now_s >= self._until_s:
            self.state = CircuitState.PROBING
            self._forget()
        if self.state is CircuitState.PROBING:
            return self._probed_count is not None
        return self.state is CircuitState.OPEN

    def limit(self, record_count: int) -> int:
        """How many records may be read at once, where so many could be."""
        return min(PROBE_RECORDS, record_count) if self._is_to_probe else record_count

    def taken(self, record_count: int) -> None:
        """So many were read."""
        if self._is_to_probe and record_count:
            self._probed_count = record_count

    def dropped(self) -> None:
        """Records that were read are not handled after all: of a probe there may be no outcome."""
        if self.state is CircuitState.PROBING:
            self._forget()

    @property
    def _is_to_probe(self) -> bool:
        return self.state is CircuitState.PROBING and self._probed_count is None

    def _open(self, now_s: float, pause_s: float) -> None:
        self.state = CircuitState.OPEN
        self._pause_s = min(pause_s, max(PAUSE_S_MAX, self._first_pause_s))
        self._until_s = now_s + self._pause_s
        self.opened_count += 1
        self._forget()

    def _forget(self) -> None:
        self._good_count = self._bad_count = 0
        self._probed_count = None
