"""ElectLeaders (key 43): have leaders elected where it pleases.

By an unclean election a replica that is not in sync may lead a partition that has no leader, at the
price of records.

No list of partitions means all of them; then the answer has every topic, without the partitions
that need no election. Version 0 knows preferred leaders only. Brokers other than the controller
forward the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

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
    TopicPartitions,
)


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    named = request.topic_partitions
    if named == []:
        return ElectLeadersResponse()
    try:
        election_type = _election_type(request.election_type)
        partitions = None if named is None else await _distinct(named)
        outcomes = await within(
            request.timeout_ms, context.controller.elect_leaders(election_type, partitions)
        )
    except KafkaError as error:
        refusal = error
        # Said of the whole request, and of each partition again: version 0 has no other place.
        results = await _results(named or [], lambda _: refusal)
        return ElectLeadersResponse(error_code=refusal.code, replica_election_results=results)
    if named is None:
        named = await _by_topic(context.broker.image.topics, outcomes)
    return ElectLeadersResponse(
        replica_election_results=await _results(named, outcomes.__getitem__)
    )


async def _distinct(named: list[TopicPartitions]) -> list[TopicPartition]:
    """What is named, each partition once."""
    distinct = {
        TopicPartition(topic.topic, number): None
        async for topic in in_turns(named)
        for number in topic.partitions
    }
    return list(distinct)


async def _by_topic(
    topics: Iterable[str], outcomes: Mapping[TopicPartition, KafkaError | None]
) -> list[TopicPartitions]:
    """Every topic, with those of its partitions that there is something to say of."""
    by_topic = {name: TopicPartitions(topic=name) for name in topics}
    async for name, number in in_turns(outcomes):
        by_topic.setdefault(name, TopicPartitions(topic=name)).partitions.append(number)
    return list(by_topic.values())


async def _results(
    named: Iterable[TopicPartitions], outcome_of: Callable[[TopicPartition], KafkaError | None]
) -> list[ReplicaElectionResult]:
    """An answer for each partition, as often and in the order in which they are named."""
    results: list[ReplicaElectionResult] = []
    async for topic in in_turns(named):
        result = ReplicaElectionResult(topic=topic.topic)
        async for number in in_turns(topic.partitions):
            outcome = outcome_of(TopicPartition(topic.topic, number))
            result.partition_result.append(
                PartitionResult(
                    partition_id=number,
                    error_code=ErrorCode.NONE if outcome is None else outcome.code,
                    error_message=None if outcome is None else str(outcome),
                )
            )
        results.append(result)
    return results


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
