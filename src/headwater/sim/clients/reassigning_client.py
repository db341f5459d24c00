"""A simulated operator who has partitions moved to other brokers, and changes his mind."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import BrokerLink, Unanswered
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
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

    def finish(self) -> None:
        """Ask for nothing new."""
        self._is_finishing = True

    async def run(self) -> None:
        while not self._is_finishing:
            random = self._link.random
            partition = random.choice(self._partitions)
            try:
                await self._ask(partition, self._somewhere())
                # Some moves are turned around, or cancelled, before they can be over.
                while random.random() < 0.4:
                    await self._ask(partition, random.choice((None, None, self._somewhere())))
            except Unanswered:
                await self._link.look_again()
            await self._link.pause()

    def _somewhere(self) -> list[int]:
        random = self._link.random
        return random.sample(range(self._broker_count), random.choice((1, 2, 3, 3)))

    async def _ask(self, partition: TopicPartition, replicas: list[int] | None) -> None:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=5_000,
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
