"""Where AlterPartition requests wait for the controller: all that wait make one change.

Leaders ask at the same moments, for instance all of them when a follower falls behind. While one
change is written the next requests gather, and then take their turn together, however many they
are.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from headwater.cluster.brokers.changes import BrokerChanges
from headwater.cluster.controller.change_turns import ChangeTurns
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.partitions.alterations import PartitionAlterations
from headwater.cluster.partitions.changes import PartitionChanges
from headwater.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


class _Waiting(NamedTuple):
    request: AlterPartitionRequest
    answer: asyncio.Future[AlterPartitionResponse]


class AlterationQueue:
    """Bounded by the brokers: each has one request under way."""

    def __init__(
        self,
        turns: ChangeTurns,
        publisher: Publisher,
        brokers: BrokerChanges,
        partitions: PartitionChanges,
    ) -> None:
        self._turns = turns
        self._publisher = publisher
        self._brokers = brokers
        self._partitions = partitions
        self._waiting: list[_Waiting] = []

    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Wait for a turn, and for the answer; KafkaError if the store could not be written."""
        answer: asyncio.Future[AlterPartitionResponse]
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, answer))
        if len(self._waiting) == 1:
            try:
                await self._turns.run(self._work_off)
            except asyncio.CancelledError:
                # The change goes on for the others; nobody is left to hear how this one ends.
                answer.cancel()
                raise
        return await answer

    async def _work_off(self) -> None:
        waiting, self._waiting = self._waiting, []
        alterations = PartitionAlterations(self._publisher.image, self._brokers.shutting_down)
        try:
            responses = [alterations.plan(each.request) for each in waiting]
            error: Exception | None = await self._partitions.carry_out(alterations.states)
        except Exception as unforeseen:
            responses, error = [AlterPartitionResponse()] * len(waiting), unforeseen
        for each, response in zip(waiting, responses, strict=True):
            if each.answer.done():
                continue
            if error is None:
                each.answer.set_result(response)
            else:
                each.answer.set_exception(error)
