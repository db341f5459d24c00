"""The load meter on virtual time: samples come by themselves."""

import asyncio
from dataclasses import dataclass

import pytest

from headwater.broker.metrics.load_meter import SAMPLE_INTERVAL_S, LoadMeter


@dataclass
class FakeWorkers:
    size: int = 4
    busy_s: float = 0.0


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is set by the test."""

    now_s = 1000.0

    def time(self) -> float:
        return self.now_s


def test_shares_follow_what_loop_and_workers_do() -> None:
    loop = SteppedLoop()
    workers = FakeWorkers()
    busy = {"s": 0.0}
    meter = LoadMeter(workers, lambda: busy["s"])
    assert (meter.loop_idle, meter.workers_idle) == (1.0, 1.0)

    async def scenario() -> None:
        meter.start()
        for _ in range(40):
            loop.now_s += SAMPLE_INTERVAL_S
            busy["s"] += SAMPLE_INTERVAL_S * 0.25
            workers.busy_s += SAMPLE_INTERVAL_S * 0.5 * workers.size
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert meter.loop_idle == pytest.approx(0.75)
        assert meter.workers_idle == pytest.approx(0.5)
        for _ in range(40):
            loop.now_s += SAMPLE_INTERVAL_S
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert (meter.loop_idle, meter.workers_idle) == (1.0, 1.0)
        meter.stop()
        loop.now_s += 100
        await asyncio.sleep(0)
        meter.stop()

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()


def test_a_broker_without_threads_of_its_own_has_idle_workers() -> None:
    async def scenario() -> None:
        meter = LoadMeter(None)
        meter.start()
        assert meter.workers_idle == 1.0
        assert 0.0 <= meter.loop_idle <= 1.0
        meter.stop()

    asyncio.run(scenario())
