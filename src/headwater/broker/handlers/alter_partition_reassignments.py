"""AlterPartitionReassignments (key 45): partitions shall be held by other brokers.

Each partition names the brokers that shall hold it, the preferred leader first, or none to cancel
the move that it is on. The answer comes when moves have begun; they end by themselves. What is
asked of a partition that moves already takes the place of what was asked before. Brokers other than
the controller forward the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.change_limits import check_change_count, within
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.reassignment.requests import Reassignment
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    factor_may_change = request.allow_replication_factor_change
    wanted = [
        Reassignment(
            TopicPartition(topic.name, each.partition_index),
            None if each.replicas is None else tuple(each.replicas),
        )
        async for topic in in_turns(request.topics)
        for each in topic.partitions
    ]
    try:
        check_change_count(len(wanted))
        outcomes = await within(
            request.timeout_ms,
            context.controller.reassign_partitions(wanted, factor_may_change=factor_may_change),
        )
    except KafkaError as error:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=factor_may_change,
            error_code=error.code,
            error_message=str(error),
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=factor_may_change,
        error_message=None,
        responses=await _responses(request, outcomes.__getitem__),
    )


async def _responses(
    request: AlterPartitionReassignmentsRequest,
    outcome_of: Callable[[TopicPartition], KafkaError | None],
) -> list[ReassignableTopicResponse]:
    responses: list[ReassignableTopicResponse] = []
    async for topic in in_turns(request.topics):
        told = ReassignableTopicResponse(name=topic.name)
        for each in topic.partitions:
            outcome = outcome_of(TopicPartition(topic.name, each.partition_index))
            told.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=each.partition_index,
                    error_code=ErrorCode.NONE if outcome is None else outcome.code,
                    error_message=None if outcome is None else str(outcome),
                )
            )
        responses.append(told)
    return responses


def _is_seen(
    _: AlterPartitionReassignmentsRequest,
    __: AlterPartitionReassignmentsResponse,
    ___: ClusterImage,
) -> bool:
    return True  # A move may be over at any time; whether it is, the controller is asked.


def _deeds(
    request: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Iterator[str]:
    done = {
        (topic.name, each.partition_index)
        for topic in response.responses
        for each in topic.partitions
        if not each.error_code
    }
    for is_cancelled, what in ((False, "reassigned"), (True, "cancelled the reassignment of")):
        names = [
            f"{topic.name}-{each.partition_index}"
            for topic in request.topics
            for each in topic.partitions
            if (each.replicas is None) is is_cancelled
            and (topic.name, each.partition_index) in done
        ]
        if names:
            yield deed(what, "partition", names)


API = ApiHandler(
    CARDS[ApiKey.ALTER_PARTITION_REASSIGNMENTS], handle, forwarded_until=_is_seen, deeds=_deeds
)
