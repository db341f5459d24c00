"""ElectLeaders (key 43): have leaders elected where it pleases.

By an unclean election a replica that is not in sync may lead a partition that has no leader, at the
price of records.

No list of partitions means all of them; then those that need no election are left out of the
answer. Brokers other than the controller forward the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.change_limits import within
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.partitions.elections import ElectionType
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ERROR_SINCE = 1


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    partitions = _partitions(request)
    outcomes: Mapping[TopicPartition, KafkaError | None]
    try:
        election_type = _election_type(request.election_type)
        outcomes = await within(
            request.timeout_ms, context.controller.elect_leaders(election_type, partitions)
        )
    except KafkaError as error:
        if context.api_version >= _ERROR_SINCE:
            return ElectLeadersResponse(error_code=error.code)
        outcomes = dict.fromkeys(partitions or (), error)
    topics: dict[str, ReplicaElectionResult] = {}
    async for partition, outcome in in_turns(outcomes.items()):
        code = ErrorCode.NONE if outcome is None else outcome.code
        if partitions is None and code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        topic = topics.setdefault(partition.topic, ReplicaElectionResult(topic=partition.topic))
        topic.partition_result.append(
            PartitionResult(
                partition_id=partition.partition,
                error_code=code,
                error_message=None if outcome is None else str(outcome),
            )
        )
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def _partitions(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    named = {
        TopicPartition(topic.topic, number): None
        for topic in request.topic_partitions
        for number in topic.partitions
    }
    return list(named)


def _election_type(number: int) -> ElectionType:
    try:
        return ElectionType(number)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no election of type {number}."
        ) from None


def _is_seen(_: ElectLeadersRequest, __: ElectLeadersResponse, ___: ClusterImage) -> bool:
    return True  # Who leads is not in the answer, and may change again at any time.


def _deeds(request: ElectLeadersRequest, response: ElectLeadersResponse) -> Iterator[str]:
    elected = [
        f"{topic.topic}-{each.partition_id}"
        for topic in response.replica_election_results
        for each in topic.partition_result
        if not each.error_code
    ]
    # A request of version 0 is for preferred leaders, and says so by default.
    kind = "an unclean" if request.election_type == ElectionType.UNCLEAN else "a preferred"
    yield deed(f"had {kind} leader elected for", "partition", elected)


API = ApiHandler(CARDS[ApiKey.ELECT_LEADERS], handle, forwarded_until=_is_seen, deeds=_deeds)
