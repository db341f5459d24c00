"""CreatePartitions (key 37): raise the number of a topic's partitions.

The number cannot go down, and keys map to other partitions when it goes up. A topic that is named
twice is refused once. Brokers other than the controller forward the request.
"""

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed, unfinished
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.change_limits import check_change_count, within
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.topics.new_topic import NewPartitions
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    outcomes: dict[str, KafkaError | None]
    try:
        check_change_count(len(request.topics))
        wanted = [_new_partitions(topic) for topic in request.topics]
        outcomes = await within(
            request.timeout_ms,
            context.controller.create_partitions(wanted, validate_only=request.validate_only),
        )
    except KafkaError as error:
        outcomes = {topic.name: error for topic in request.topics}
    return CreatePartitionsResponse(
        results=[_result(name, error) async for name, error in in_turns(outcomes.items())]
    )


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    replicas = [assignment.broker_ids for assignment in topic.assignments]
    return NewPartitions(topic.name, topic.count, replicas)


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.NONE)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=str(error))


def _is_seen(
    request: CreatePartitionsRequest, response: CreatePartitionsResponse, image: ClusterImage
) -> bool:
    wanted = {topic.name: topic.count for topic in request.topics}
    return request.validate_only or all(
        result.error_code
        # A topic that is gone by now is waited for no more.
        or (topic := image.topics.get(result.name)) is None
        or len(topic.partitions) >= wanted[result.name]
        for result in response.results
    )


def _deeds(request: CreatePartitionsRequest, response: CreatePartitionsResponse) -> Iterator[str]:
    if request.validate_only:
        return
    wanted = {topic.name: topic.count for topic in request.topics}
    grown = [
        f"{each.name} (partitions: {wanted.get(each.name)})"
        for each in response.results
        if not each.error_code
    ]
    yield deed("added partitions to", "topic", grown)
    outcomes = ((each.name, each.error_code) for each in response.results)
    yield unfinished("growth of topic", outcomes)


API = ApiHandler(CARDS[ApiKey.CREATE_PARTITIONS], handle, forwarded_until=_is_seen, deeds=_deeds)
