import pytest

from headwater.base.checks import InvariantError
from headwater.base.clocks import Clock, ManualClock, SystemClock


def test_manual_clock_moves_both_times_together() -> None:
    clock = ManualClock(wall_ms=1_000, monotonic_ms=5.0)
    clock.advance(250)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (1_250, 255.0)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(InvariantError):
        ManualClock().advance(-1)


def test_system_clock_tells_this_century_and_never_goes_back() -> None:
    clock: Clock = SystemClock()
    earlier = clock.monotonic_ms()
    assert 946_684_800_000 < clock.wall_ms() < 4_102_444_800_000
    assert clock.monotonic_ms() >= earlier
