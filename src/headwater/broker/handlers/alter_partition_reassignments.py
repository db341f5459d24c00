"""AlterPartitionReassignments (key 45): partitions shall be held by other brokers.

Each partition names the brokers that shall hold it, the preferred leader first, or none to cancel
the move that it is on. The answer comes when moves have begun; they end by themselves. What is
asked of a partition that moves already takes the place of what was asked before. Brokers other than
the controller forward the request.

A tagged field that Kafka does not have says how fast replicas may be copied: see
`wire.cluster_messages.alter_partition_reassignments`.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.change_limits import check_change_count, within
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.partitions.leader_moves import Outcome
from headwater.cluster.reassignment.requests import Reassignment
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.alter_partition_reassignments import (
    AS_BEFORE,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from headwater.wire.messages.alter_partition_reassignments import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    factor_may_change = request.allow_replication_factor_change
    throttle = None if request.throttle == AS_BEFORE else request.throttle
    wanted = [
        Reassignment(
            TopicPartition(topic.name, each.partition_index),
            None if each.replicas is None else tuple(each.replicas),
            throttle,
        )
        async for topic in in_turns(request.topics)
        for each in topic.partitions
    ]
    try:
        check_change_count(len(wanted))
        if request.throttle < AS_BEFORE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A throttle cannot be less than nothing.")
        if throttle is None or wanted:
            changing = context.controller.reassign_partitions(
                wanted, factor_may_change=factor_may_change
            )
        else:
            changing = context.controller.throttle_reassignments(throttle)
        outcomes = await within(request.timeout_ms, changing)
    except KafkaError as error:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=factor_may_change,
            error_code=error.code,
            error_message=str(error),
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=factor_may_change,
        error_message=None,
        responses=await _responses(request, outcomes),
    )


async def _responses(
    request: AlterPartitionReassignmentsRequest, outcomes: Outcome
) -> list[ReassignableTopicResponse]:
    """One for each partition that is named; without any, for each move that got the throttle."""
    named = [
        (topic.name, [each.partition_index for each in topic.partitions])
        for topic in request.topics
    ]
    responses: list[ReassignableTopicResponse] = []
    async for topic, numbers in in_turns(named or _by_topic(outcomes)):
        told = ReassignableTopicResponse(name=topic)
        for number in numbers:
            outcome = outcomes[TopicPartition(topic, number)]
            told.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=number,
                    error_code=ErrorCode.NONE if outcome is None else outcome.code,
                    error_message=None if outcome is None else str(outcome),
                )
            )
        responses.append(told)
    return responses


def _by_topic(outcomes: Outcome) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for name in outcomes:
        topics.setdefault(name.topic, []).append(name.partition)
    return list(topics.items())


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
    throttled = sorted(f"{topic}-{number}" for topic, number in done)
    if throttled and not request.topics:
        rate = f"{request.throttle:,} bytes a second" if request.throttle else "no throttle"
        yield deed(f"gave {rate} to the reassignment of", "partition", throttled)


API = ApiHandler(
    CARDS[ApiKey.ALTER_PARTITION_REASSIGNMENTS], handle, forwarded_until=_is_seen, deeds=_deeds
)
