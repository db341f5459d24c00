"""Whatever stands for a thread hands back what the work returned, or raises what it raised."""

import asyncio

import pytest

from headwater.base.threads import RunInThread
from headwater.broker.worker_pool import WorkerPool
from headwater.sim.broker_world import BrokerWorld
from headwater.sim.campaigns.broker_logs import run_inline


class _BrokenDiskError(OSError):
    pass


def _fail() -> int:
    raise _BrokenDiskError


async def _keeps_its_word(run_in_thread: RunInThread) -> None:
    assert await run_in_thread(lambda: "read") == "read"
    assert await run_in_thread(lambda: [1, 2]) == [1, 2]
    with pytest.raises(_BrokenDiskError):
        await run_in_thread(_fail)


def test_the_threads_of_a_pool() -> None:
    pool = WorkerPool("pool", 2)
    try:
        asyncio.run(_keeps_its_word(pool.run))
    finally:
        pool.close()


def test_the_simulator_in_the_place_of_threads() -> None:
    world = BrokerWorld(1)
    world.run(_keeps_its_word(world.host.run_in_thread))
    assert world.loop.time() > 0, "a thread takes its time"
    world.close()


@pytest.mark.parametrize("run_in_thread", [asyncio.to_thread, run_inline])
def test_what_tests_use(run_in_thread: RunInThread) -> None:
    asyncio.run(_keeps_its_word(run_in_thread))
