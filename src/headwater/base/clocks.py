"""Two kinds of time, kept apart.

Wall time is what the world calls now: it goes into records and file names, and an administrator or
a time daemon may set it backwards. Monotonic time only ever moves forwards and has no meaning
outside this process: every delay, timeout and period is measured with it. They have different
methods and different types here (`int` and `float`) so that one is not taken for the other.

State and protocol code does not hold a clock at all. It is told the time as an argument by the
shell around it, which is what allows tests and the simulator to choose the time.
"""

import time
from typing import Protocol

from headwater.base.checks import check


class Clock(Protocol):
    """Where a shell gets its time from."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump, also backwards."""
        ...

    def monotonic_ms(self) -> float:
        """Milliseconds since an arbitrary moment; never decreases."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: float = 0.0) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> float:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass on both clocks."""
        check(ms >= 0, "time cannot pass backwards, but %d ms were asked for", ms)
        self._wall_ms += ms
        self._monotonic_ms += ms
