"""ListPartitionReassignments (key 46): partitions on their way to other brokers.

No list of topics means all of them. What does not move, or does not exist, is left out. Brokers
other than the controller forward the request, for the controller knows first that a move has ended.
A tagged field, which Kafka's clients pass over, tells the throttles that moves have.
"""

from collections.abc import Iterable

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.cluster.image.image import ClusterImage, PartitionImage
from headwater.cluster.reassignment.requests import moving_partitions
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ThrottledReassignment,
)
from headwater.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    try:
        image = context.controller.image
    except KafkaError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))
    named = request.topics
    moving = moving_partitions(image) if named is None else await _named(named, image)
    topics: dict[str, OngoingTopicReassignment] = {}
    throttles: list[ThrottledReassignment] = []
    for (topic, number), partition in moving:
        told = topics.setdefault(topic, OngoingTopicReassignment(name=topic))
        told.partitions.append(
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
        )
        if partition.throttle:
            throttles.append(
                ThrottledReassignment(
                    topic=topic, partition_index=number, throttle=partition.throttle
                )
            )
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=list(topics.values()), throttles=throttles
    )


async def _named(
    named: list[ListPartitionReassignmentsTopics], image: ClusterImage
) -> Iterable[tuple[TopicPartition, PartitionImage]]:
    """Those of the named partitions that move, each once."""
    found: dict[TopicPartition, PartitionImage] = {}
    async for asked in in_turns(named):
        topic = image.topics.get(asked.name)
        partitions = () if topic is None else topic.partitions
        for number in asked.partition_indexes:
            if 0 <= number < len(partitions) and partitions[number].is_moving:
                found[TopicPartition(asked.name, number)] = partitions[number]
    return found.items()


def _is_seen(
    _: ListPartitionReassignmentsRequest, __: ListPartitionReassignmentsResponse, ___: ClusterImage
) -> bool:
    return True


API = ApiHandler(CARDS[ApiKey.LIST_PARTITION_REASSIGNMENTS], handle, forwarded_until=_is_seen)
