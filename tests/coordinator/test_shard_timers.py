"""Timers of a shard: when they run, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from headwater.base.loop_timer import LoopTimer
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.shard_timers import ShardTimers
from headwater.sim.clock import SimulatedClock
from headwater.sim.virtual_loop import VirtualLoop


def test_a_timer_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    loop = VirtualLoop()
    timers = ShardTimers(LoopTimer(loop), SimulatedClock(loop))
    moments: list[float] = []
    outcomes: list[Outcome] = []
    timers.run = outcomes.append

    def fail_twice(_now_ms: int) -> Outcome:
        moments.append(loop.time())
        if len(moments) <= 2:
            raise ValueError("planted")
        return Outcome()

    async def scenario() -> None:
        timers.schedule("session", 100, fail_twice)
        await asyncio.sleep(10)

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
    assert len(moments) == 3 and len(outcomes) == 1
    assert all(0.5 <= later - sooner < 1 for sooner, later in pairwise(moments))
    assert caplog.text.count("planted") >= 2
    assert not timers.is_scheduled("session")


def test_a_timer_that_set_itself_anew_before_it_failed_is_left_at_that() -> None:
    loop = VirtualLoop()
    timers = ShardTimers(LoopTimer(loop), SimulatedClock(loop))
    moments: list[float] = []

    def fail(_now_ms: int) -> Outcome:
        moments.append(loop.time())
        timers.schedule("upkeep", 3_000, fail)
        raise ValueError("planted")

    async def scenario() -> None:
        timers.schedule("upkeep", 0, fail)
        await asyncio.sleep(4)
        timers.close()
        await asyncio.sleep(10)

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
    assert len(moments) == 2
