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
from headwater.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headwater.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class PartitionReassignment(NamedTuple):
    """A partition on its way to other brokers."""

    #: All that it has meanwhile, those first that it will keep.
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReassignmentOperations(Operations):
    """See `AdminOperations`."""

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        """Have partitions held by other brokers, the preferred leader first; None cancels a move.

        Returns when the moves have begun. What is asked of a partition that moves already takes the
        place of what was asked before.
        """
        names = sorted(given_partitions(targets))
        if not names:
            return {}
        wanted = {each: targets[each] for each in names}

        async def attempt() -> Outcomes[TopicPartition, None]:
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=int(self.connection.request_timeout_s * 1000),
                allow_replication_factor_change=allow_replication_factor_change,
                topics=_wanted_topics(wanted),
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

        answered = await self.connection.retrying(attempt, "Reassigning partitions")
        outcomes = {each: answered.get(each, not_answered(each)) for each in wanted}
        return raised_or_returned(outcomes, raise_errors)

    async def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Those of some partitions, or with None of all, that are on their way to other brokers."""
        named = None if partitions is None else sorted(set(given_partitions(partitions)))
        if named == []:
            return {}

        async def attempt() -> dict[TopicPartition, PartitionReassignment]:
            request = ListPartitionReassignmentsRequest(
                timeout_ms=int(self.connection.request_timeout_s * 1000),
                topics=None if named is None else _listed_topics(named),
            )
            response = await self.connection.ask_controller(
                request, ListPartitionReassignmentsResponse
            )
            if response.error_code:
                raise refusal(response.error_code, response.error_message, "The list of moves")
            return {
                TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                    tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
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
