"""Long loops let the event loop do other things in between."""

import asyncio

import pytest

from headwater.broker.requests.fair_turns import ITEMS_PER_TURN, in_turns


@pytest.mark.parametrize("count", [0, 1, ITEMS_PER_TURN - 1, ITEMS_PER_TURN, 5 * ITEMS_PER_TURN])
def test_all_items_come_and_others_get_turns(count: int) -> None:
    async def run() -> tuple[list[int], int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(others())
        items = [item async for item in in_turns(range(count))]
        task.cancel()
        return items, turns

    items, turns = asyncio.run(run())
    assert items == list(range(count))
    assert turns == count // ITEMS_PER_TURN
