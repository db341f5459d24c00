"""A log line knows its broker, in tasks, callbacks and threads that the broker has started."""

import asyncio

from headwater.base.log_origin import LogOrigin, broker_of_line
from headwater.broker.worker_pool import WorkerPool


def test_what_a_broker_starts_is_known_for_its_own() -> None:
    found: dict[str, int | None] = {}

    async def broker(broker_id: int, both_run: asyncio.Barrier) -> None:
        origin = LogOrigin()
        origin.enter()
        loop = asyncio.get_running_loop()
        called_back: asyncio.Future[int | None] = loop.create_future()
        loop.call_soon(lambda: called_back.set_result(broker_of_line()))
        found[f"callback of {broker_id}"] = await called_back
        # It is found out after the tasks have begun.
        origin.broker_id = broker_id
        await both_run.wait()
        pool = WorkerPool("test", 1)
        found[f"thread of {broker_id}"] = await pool.run(broker_of_line)
        pool.close()
        found[f"task of {broker_id}"] = await asyncio.create_task(_look())

    async def run() -> None:
        both_run = asyncio.Barrier(2)
        await asyncio.gather(broker(1, both_run), broker(2, both_run))
        found["nobody"] = broker_of_line()

    asyncio.run(run())
    assert found == {
        **{f"callback of {each}": None for each in (1, 2)},
        **{f"{what} of {each}": each for what in ("thread", "task") for each in (1, 2)},
        "nobody": None,
    }


async def _look() -> int | None:
    return broker_of_line()
