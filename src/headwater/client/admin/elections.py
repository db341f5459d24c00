"""Admin operations on leaders: have partitions elect theirs."""

from collections.abc import Collection
from enum import IntEnum
from itertools import groupby

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.admin.outcomes import (
    Operations,
    Outcomes,
    not_answered,
    raised_or_returned,
)
from headwater.client.errors import refusal
from headwater.client.given_items import given_partitions
from headwater.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """Who is to lead, by its number in the protocol."""

    #: The first of a partition's replicas, if it is in sync.
    PREFERRED = 0
    #: Of a partition that has no leader, any replica that is alive, at the price of records that
    #: only the others have.
    UNCLEAN = 1


class ElectionOperations(Operations):
    """See `AdminOperations`."""

    async def elect_leaders(
        self,
        partitions: Collection[TopicPartition] | None = None,
        *,
        election_type: ElectionType = ElectionType.PREFERRED,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, bool]:
        """Hold elections for partitions, or with None for all that need one.

        True for a partition that has a new leader, False for one that needed no election. Of all
        partitions, those are left out that needed none.
        """
        named = None if partitions is None else sorted(set(given_partitions(partitions)))
        if named == []:
            return {}

        async def attempt() -> Outcomes[TopicPartition, bool]:
            request = ElectLeadersRequest(
                election_type=election_type,
                topic_partitions=None if named is None else _by_topic(named),
                timeout_ms=int(self.connection.request_timeout_s * 1000),
            )
            response = await self.connection.ask_controller(request, ElectLeadersResponse)
            if response.error_code:
                raise refusal(response.error_code, None, "The election")
            return _outcomes(response)

        # Not `settle`: what hinders an election passes only if somebody does something about it.
        answered = await self.connection.retrying(attempt, "Electing leaders")
        outcomes = {each: answered.get(each, not_answered(each)) for each in named or answered}
        return raised_or_returned(outcomes, raise_errors)


def _by_topic(partitions: list[TopicPartition]) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic=topic, partitions=[each.partition for each in some])
        for topic, some in groupby(partitions, lambda each: each.topic)
    ]


def _outcomes(response: ElectLeadersResponse) -> Outcomes[TopicPartition, bool]:
    outcomes: Outcomes[TopicPartition, bool] = {}
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            partition = TopicPartition(topic.topic, result.partition_id)
            if result.error_code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                outcomes[partition] = result.error_code == ErrorCode.NONE
            else:
                message = result.error_message
                outcomes[partition] = refusal(result.error_code, message, str(partition))
    return outcomes
