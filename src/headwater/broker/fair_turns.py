"""Long answers are made piece by piece, so that other clients get their turn in between.

One event loop serves everybody. A request that names a hundred thousand partitions is allowed, but
answering it in one go would keep all others waiting for seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

#: A handler spends about ten microseconds on an item, so this is a turn of some milliseconds.
ITEMS_PER_TURN: Final = 500


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """The items; after each few hundred of them the loop does what else there is to do.

    The world may have changed after an item: who needs one state of it takes hold of that first.
    """
    for number, item in enumerate(items, 1):
        yield item
        if number % ITEMS_PER_TURN == 0:
            await asyncio.sleep(0)
