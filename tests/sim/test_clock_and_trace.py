import asyncio

from headwater.base.clocks import Clock
from headwater.sim.clock import START_WALL_MS, SimulatedClock
from headwater.sim.trace import Trace
from headwater.sim.virtual_loop import VirtualLoop


def test_both_kinds_of_time_follow_the_loop() -> None:
    loop = VirtualLoop()
    clock: Clock = SimulatedClock(loop)
    fast = SimulatedClock(loop, drift=0.01)
    loop.run_until_complete(asyncio.sleep(100))
    assert (clock.wall_ms(), clock.monotonic_ms()) == (START_WALL_MS + 100_000, 100_000)
    assert (fast.wall_ms(), fast.monotonic_ms()) == (START_WALL_MS + 101_000, 100_000)
    loop.close()


def test_setting_the_wall_clock_leaves_monotonic_time_alone() -> None:
    loop = VirtualLoop()
    clock = SimulatedClock(loop)
    clock.shift_wall(-5_000)
    assert (clock.wall_ms(), clock.monotonic_ms()) == (START_WALL_MS - 5_000, 0)
    loop.close()


def test_equal_traces_have_equal_hashes_and_others_do_not() -> None:
    now_s = [0.0]
    first, same, later, other = (Trace(lambda: now_s[0], lines_kept=2) for _ in range(4))
    for trace in (first, same):
        for number in range(5):
            trace.note("disk", f"write {number}")
    now_s[0] = 1.0
    for number in range(5):
        later.note("disk", f"write {number}")
    now_s[0] = 0.0
    for number in range(4):
        other.note("disk", f"write {number}")
    assert first.hash == same.hash
    assert len({first.hash, later.hash, other.hash}) == 3
    assert first.line_count == 5
    assert first.latest() == "0.000000 disk: write 3\n0.000000 disk: write 4"
