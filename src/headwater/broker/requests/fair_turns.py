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
#: For work on an item that reads some thousand records: tens of milliseconds.
ONE_PER_TURN: Final = 1
#: For answers that list all settings of each item, which takes half a millisecond.
DESCRIPTIONS_PER_TURN: Final = 10


async def in_turns(items: Iterable[T], items_per_turn: int = ITEMS_PER_TURN) -> AsyncIterator[T]:
    """The items; after each so many of them the loop does what else there is to do.

    The world may have changed after an item: who needs one state of it takes hold of that first.
    """
    for number, item in enumerate(items, 1):
        yield item
        if number % items_per_turn == 0:
            await asyncio.sleep(0)
