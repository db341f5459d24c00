"""The throttle, on a clock that only it moves."""

from __future__ import annotations

import pytest

from headwater.base.checks import InvariantError
from headwater.base.clocks import ManualClock
from headwater.storage.compaction.io_throttle import IoThrottle


def throttled(clock: ManualClock, bytes_per_second: float) -> IoThrottle:
    return IoThrottle(bytes_per_second, clock, lambda duration_ms: clock.advance(int(duration_ms)))


def test_the_rate_is_kept() -> None:
    clock = ManualClock()
    throttle = throttled(clock, 10_000)
    for _ in range(200):
        throttle.spend(500)
    assert clock.monotonic_ms() == pytest.approx(10_000, rel=0.05)


def test_work_that_is_slower_is_not_slowed_down() -> None:
    clock = ManualClock()
    throttle = throttled(clock, 10_000)
    for _ in range(200):
        clock.advance(100)
        throttle.spend(500)
    assert clock.monotonic_ms() == 20_000


def test_a_pause_is_not_saved_up() -> None:
    clock = ManualClock()
    throttle = throttled(clock, 1_000)
    clock.advance(60_000)
    throttle.spend(1)
    throttle.spend(10_000)
    assert clock.monotonic_ms() == pytest.approx(70_000, rel=0.01)


def test_no_limit_and_no_rate() -> None:
    clock = ManualClock()
    throttle = throttled(clock, float("inf"))
    throttle.spend(1 << 40)
    assert clock.monotonic_ms() == 0
    with pytest.raises(InvariantError):
        throttled(clock, 0)
