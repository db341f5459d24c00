"""The order of a producer's batches while its transaction is being verified."""

import asyncio

from headwater.replication.partition.append_turns import TransactionTurns
from tests.support.async_tests import run_async


@run_async
async def test_batches_of_one_producer_wait_for_each_other_and_others_do_not() -> None:
    turns = TransactionTurns()
    order: list[str] = []
    released = asyncio.Event()

    async def append(name: str, producer_id: int, *, waits: bool = False) -> None:
        async with taken[name]:
            if waits:
                await released.wait()
            order.append(name)

    taken = {name: turns.take(7) for name in ("first", "second")} | {"other": turns.take(8)}
    assert turns.is_busy(7)
    assert not turns.is_busy(9)
    tasks = [
        asyncio.create_task(append("second", 7)),
        asyncio.create_task(append("first", 7, waits=True)),
        asyncio.create_task(append("other", 8)),
    ]
    await tasks[2]
    assert order == ["other"]
    released.set()
    await asyncio.gather(*tasks)
    assert order == ["other", "first", "second"]


@run_async
async def test_nothing_is_left_of_those_who_are_done() -> None:
    turns = TransactionTurns()
    for producer_id in range(10):
        async with turns.take(producer_id):
            assert turns.is_busy(producer_id)
        assert not turns.is_busy(producer_id)
    first, second = turns.take(1), turns.take(1)
    async with first:
        pass
    assert turns.is_busy(1)
    async with second:
        pass
    await asyncio.sleep(0)
    assert len(turns) == 0
