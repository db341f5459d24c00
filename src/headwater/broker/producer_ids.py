"""Producer ids, handed out from blocks that the controller reserves for this broker.

An id is never handed out twice in the life of a cluster: that is what lets a partition tell a
producer's retry from another producer's batch. The controller notes each block durably before it
gives it away. What is left of a block when the broker stops is lost, which costs nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from headwater.base.checks import check

AllocateBlock = Callable[[], Awaitable[range]]


class ProducerIds:
    """The ids of the current block; the owner is the broker's event loop."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._block = range(0)
        self._allocation: asyncio.Task[None] | None = None

    async def next_id(self) -> int:
        """An id that nobody else gets; what the controller raises goes to all who wait for it."""
        while not self._block:
            if self._allocation is None:
                self._allocation = asyncio.ensure_future(self._allocate())
            # Shielded, because others wait for the block too when a client hangs up.
            await asyncio.shield(self._allocation)
        producer_id = self._block[0]
        self._block = self._block[1:]
        return producer_id

    async def _allocate(self) -> None:
        try:
            block = await self._allocate_block()
        finally:
            self._allocation = None
        check(len(block) > 0, "the controller allocated no producer ids")
        self._block = block
