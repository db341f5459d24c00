"""A simulated operator who has partitions moved to other brokers, and changes his mind.

Some of the moves have a throttle: of next to nothing, so that it is hardly ever open, or of more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import BrokerLink, Unanswered
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.cluster_messages.alter_partition_reassignments import (
    AS_BEFORE,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headwater.wire.messages.alter_partition_reassignments import (
    ReassignablePartition,
    ReassignableTopic,
)

#: What a move may be answered with: what it is about has changed, or brokers are away.
_EXPECTED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
#: In bytes a second.
_THROTTLES = (AS_BEFORE, AS_BEFORE, 0, 50, 500, 5_000)
#: More than is ever written.
_LOOSE = 50_000


class ReassigningClient:
    def __init__(
        self, link: BrokerLink, partitions: Sequence[TopicPartition], broker_count: int
    ) -> None:
        self._link = link
        self._partitions = partitions
        self._broker_count = broker_count
        self._is_finishing = False
        self.begun_count = 0
        self.cancelled_count = 0
        self.throttled_count = 0

    def finish(self) -> None:
        """Ask for nothing new."""
        self._is_finishing = True

    async def run(self) -> None:
        while not self._is_finishing:
            random = self._link.random
            partition = random.choice(self._partitions)
            try:
                await self._ask(partition, self._somewhere(), random.choice(_THROTTLES))
                # Some moves are turned around, or cancelled, before they can be over.
                while random.random() < 0.4:
                    replicas = random.choice((None, None, self._somewhere()))
                    await self._ask(partition, replicas, random.choice(_THROTTLES))
                if random.random() < 0.2:
                    await self._throttle_all(random.choice((0, 500, 5_000)))
            except Unanswered:
                await self._link.look_again()
            await self._link.pause()

    async def drain(self, broker: int, holders: Callable[[TopicPartition], Sequence[int]]) -> None:
        """Have everything moved off a broker, however long that takes."""
        while left := [each for each in self._partitions if broker in holders(each)]:
            for partition in left:
                kept = [each for each in holders(partition) if each != broker]
                others = [each for each in range(self._broker_count) if each != broker]
                try:
                    await self._ask(
                        partition, kept or [self._link.random.choice(others)], AS_BEFORE
                    )
                except Unanswered:
                    await self._link.look_again()
            await asyncio.sleep(1.0)

    def _somewhere(self) -> list[int]:
        random = self._link.random
        return random.sample(range(self._broker_count), random.choice((1, 2, 3, 3)))

    async def _ask(
        self, partition: TopicPartition, replicas: list[int] | None, throttle: int
    ) -> None:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=5_000,
            throttle=throttle,
            topics=[
                ReassignableTopic(
                    name=partition.topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=partition.partition, replicas=replicas
                        )
                    ],
                )
            ],
        )
        answer = await self._link.ask(request, AlterPartitionReassignmentsResponse)
        code = ErrorCode.from_wire(
            answer.error_code or answer.responses[0].partitions[0].error_code
        )
        if code not in _EXPECTED:
            raise PropertyViolated(f"a partition can be moved: {partition} got {code.name}")
        if code is ErrorCode.NONE:
            self.begun_count += replicas is not None
            self.cancelled_count += replicas is None
            self.throttled_count += throttle > 0

    async def loosen(self) -> None:
        """See to it, for as long as it takes, that what is throttled can end.

        One that may have less than is written meanwhile never does.
        """
        while True:
            try:
                await self._throttle_all(_LOOSE)
            except Unanswered:
                await self._link.look_again()
            await asyncio.sleep(1.0)

    async def _throttle_all(self, throttle: int) -> None:
        """Give all moves that are under way another throttle."""
        request = AlterPartitionReassignmentsRequest(timeout_ms=5_000, throttle=throttle)
        answer = await self._link.ask(request, AlterPartitionReassignmentsResponse)
        code = ErrorCode.from_wire(answer.error_code)
        if code not in _EXPECTED:
            raise PropertyViolated(f"moves can be throttled: got {code.name}")
