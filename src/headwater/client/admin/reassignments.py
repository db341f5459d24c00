"""Admin operations on where partitions are: have them move to other brokers, see how it goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin.outcomes import (
    Operations,
    Outcomes,
    not_answered,
    raised_or_returned,
)
from headwater.client.errors import refusal
from headwater.client.given_items import given_partitions
from headwater.client.kafka_errors import UnsupportedVersionError
from headwater.wire.cluster_messages.alter_partition_reassignments import (
    AS_BEFORE,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headwater.wire.cluster_messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from headwater.wire.messages.alter_partition_reassignments import (
    ReassignablePartition,
    ReassignableTopic,
)
from headwater.wire.messages.list_partition_reassignments import ListPartitionReassignmentsTopics


class PartitionReassignment(NamedTuple):
    """A partition on its way to other brokers."""

    #: All that it has meanwhile, those first that it will keep.
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    #: What a broker sends or receives for it in a second; 0 is as much as it can, and always so
    #: where brokers do not know of throttles.
    throttle_bytes: int = 0


class ReassignmentOperations(Operations):
    """See `AdminOperations`."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        throttle_bytes: int | None = None,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        """Have partitions held by other brokers, the preferred leader first; None cancels a move.

        Returns when the moves have begun. What is asked of a partition that moves already takes the
        place of what was asked before.

        With `throttle_bytes` no broker sends or receives more than that in a second for replicas
        that are being added, and the throttle goes with the move; 0 is none. Kafka's brokers do not
        have it: then nothing is begun.
        """
        names = sorted(given_partitions(targets))
        if not names:
            return {}
        wanted = {each: targets[each] for each in names}
        answered = await self._alter(
            _wanted_topics(wanted),
            throttle_bytes,
            factor_may_change=allow_replication_factor_change,
        )
        outcomes = {each: answered.get(each, not_answered(each)) for each in wanted}
        return raised_or_returned(outcomes, raise_errors)

    async def throttle_partition_reassignments(
        self, throttle_bytes: int, *, raise_errors: bool = True
    ) -> Outcomes[TopicPartition, None]:
        """Give all moves that are under way another throttle, in bytes a second; 0 takes it away.

        Kafka's brokers do not have it.
        """
        return raised_or_returned(await self._alter([], throttle_bytes), raise_errors)

    async def _alter(
        self,
        topics: list[ReassignableTopic],
        throttle_bytes: int | None,
        *,
        factor_may_change: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        if throttle_bytes is not None and throttle_bytes < 0:
            raise ValueError("A throttle cannot be less than nothing.")

        async def attempt() -> Outcomes[TopicPartition, None]:
            if throttle_bytes is not None:
                await self._require_throttles()
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=int(self.connection.request_timeout_s * 1000),
                allow_replication_factor_change=factor_may_change,
                topics=topics,
                throttle=AS_BEFORE if throttle_bytes is None else throttle_bytes,
            )
            response = await self.connection.ask_controller(
                request, AlterPartitionReassignmentsResponse
            )
            if response.error_code:
                raise refusal(response.error_code, response.error_message, "The reassignment")
            return {
                (name := TopicPartition(topic.name, each.partition_index)): refusal(
                    each.error_code, each.error_message, str(name)
                )
                if each.error_code
                else None
                for topic in response.responses
                for each in topic.partitions
            }

        return await self.connection.retrying(attempt, "Reassigning partitions")

    async def takes_throttles(self) -> bool:
        """Whether a move can have a throttle of its own, which Kafka's brokers do not know."""

        async def attempt() -> bool:
            return (await self._list([])).throttles is not None

        return await self.connection.retrying(attempt, "Asking for throttles")

    async def _require_throttles(self) -> None:
        if (await self._list([])).throttles is None:
            raise UnsupportedVersionError(
                "The brokers of this cluster do not take a throttle with a reassignment."
            )

    async def _list(
        self, topics: list[ListPartitionReassignmentsTopics] | None
    ) -> ListPartitionReassignmentsResponse:
        request = ListPartitionReassignmentsRequest(
            timeout_ms=int(self.connection.request_timeout_s * 1000), topics=topics
        )
        response = await self.connection.ask_controller(request, ListPartitionReassignmentsResponse)
        if response.error_code:
            raise refusal(response.error_code, response.error_message, "The list of moves")
        return response

    async def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Those of some partitions, or with None of all, that are on their way to other brokers."""
        named = None if partitions is None else sorted(set(given_partitions(partitions)))
        if named == []:
            return {}

        async def attempt() -> dict[TopicPartition, PartitionReassignment]:
            response = await self._list(None if named is None else _listed_topics(named))
            throttles = {
                TopicPartition(each.topic, each.partition_index): each.throttle
                for each in response.throttles or ()
            }
            return {
                (name := TopicPartition(topic.name, each.partition_index)): PartitionReassignment(
                    tuple(each.replicas),
                    tuple(each.adding_replicas),
                    tuple(each.removing_replicas),
                    throttles.get(name, 0),
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self.connection.retrying(attempt, "Listing reassignments")


def _wanted_topics(
    wanted: Mapping[TopicPartition, Sequence[int] | None],
) -> list[ReassignableTopic]:
    return [
        ReassignableTopic(
            name=topic,
            partitions=[
                ReassignablePartition(
                    partition_index=each.partition,
                    replicas=None if replicas is None else list(replicas),
                )
                for each, replicas in some
            ],
        )
        for topic, some in groupby(wanted.items(), lambda item: item[0].topic)
    ]


def _listed_topics(named: list[TopicPartition]) -> list[ListPartitionReassignmentsTopics]:
    return [
        ListPartitionReassignmentsTopics(
            name=topic, partition_indexes=[each.partition for each in some]
        )
        for topic, some in groupby(named, lambda each: each.topic)
    ]
