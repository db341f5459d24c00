"""Producer ids, handed out from blocks that the controller reserves for this broker.

An id is never handed out twice in the life of a cluster: that is what lets a partition tell a
producer's retry from another producer's batch. The controller notes each block durably before it
gives it away. What is left of a block when the broker stops is lost, which costs nothing.

The next block is asked for before the present one is used up, so that new producers mostly do not
notice when there is no controller for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from headwater.base.checks import check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.requests.forwarding import ask_controller
from headwater.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from headwater.broker.context import BrokerContext

_logger = logging.getLogger(__name__)

#: What is left of a block when the next one is asked for, as a part of it.
_RESERVE: Final = 0.1

AllocateBlock = Callable[[], Awaitable[range]]


async def allocate_block(broker: BrokerContext) -> range:
    """A block of ids from the controller; COORDINATOR_LOAD_IN_PROGRESS if none can be had.

    To producers of all kinds that is a reason to ask again, which some others would not be.
    """
    request = AllocateProducerIdsRequest(
        broker_id=broker.node_id, broker_epoch=broker.member.broker.broker_epoch
    )
    timeout_s = broker.settings.integer("request.timeout.ms") / 1000
    try:
        response: AllocateProducerIdsResponse = await ask_controller(broker, request, timeout_s)
    except KafkaError as error:
        raise _none_for_now(str(error)) from error
    if response.error_code:
        raise _none_for_now(ErrorCode.from_wire(response.error_code).message)
    first = response.producer_id_start
    return range(first, first + response.producer_id_len)


class ProducerIds:
    """The ids of the current block; the owner is the broker's event loop."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._block = range(0)
        self._next_block = range(0)
        self._reserve = 0
        self._allocation: asyncio.Task[None] | None = None

    async def next_id(self) -> int:
        """An id that nobody else gets; what the controller raises goes to all who wait for it."""
        while not self._block:
            if self._next_block:
                self._block, self._next_block = self._next_block, range(0)
                self._reserve = int(len(self._block) * _RESERVE)
                break
            # Shielded, because others wait for the block too when a client hangs up.
            await asyncio.shield(self._allocating())
        producer_id = self._block[0]
        self._block = self._block[1:]
        if 0 < len(self._block) <= self._reserve and not self._next_block:
            self._allocating().add_done_callback(_note_failure)
        return producer_id

    def _allocating(self) -> asyncio.Task[None]:
        if self._allocation is None:
            self._allocation = asyncio.ensure_future(self._allocate())
        return self._allocation

    async def _allocate(self) -> None:
        try:
            block = await self._allocate_block()
        finally:
            self._allocation = None
        check(len(block) > 0, "the controller allocated no producer ids")
        self._next_block = block


def _none_for_now(reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"There are no producer ids for now: {reason}"
    )


def _note_failure(allocation: asyncio.Task[None]) -> None:
    """Nobody may have waited for it; whoever needs the block tries again."""
    if not allocation.cancelled() and allocation.exception() is not None:
        _logger.info("no producer ids could be had in advance: %s", allocation.exception())
