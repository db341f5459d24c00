"""DescribeTopicPartitions (key 75): topics and partitions, a limited number at a time.

No names means all topics. Topics come sorted by name; where the limit cuts the list, the answer
carries a cursor, the next topic and partition, to go on from.

The limit is the smaller one of the client's and `max.request.partition.size.limit`. With a cursor,
topics in front of it are left out. Topics that do not exist are answered with an error each, and
count for nothing.
"""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import validate_topic_name
from headwater.broker.access.authorized_operations import TOPIC_OPERATIONS
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.advertised_addresses import client_side
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.partition_description import ReachableBrokers
from headwater.cluster.image.image import TopicImage, is_internal
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


async def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    asked = sorted({topic.name for topic in request.topics})
    image = context.broker.image
    names = asked or sorted(image.topics)
    cursor = request.cursor
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        if not _is_valid(cursor, names, named=bool(asked)):
            return _refusal(asked)
    reachable = ReachableBrokers(image, client_side(context))
    limit = context.broker.settings.integer("max.request.partition.size.limit")
    room = max(min(limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    async for name in in_turns(names):
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        described = _describe(topic, first, first + room, reachable)
        response.topics.append(described)
        room -= len(described.partitions)
        if first + len(described.partitions) < len(topic.partitions):
            following = first + len(described.partitions)
            response.next_cursor = Cursor(topic_name=name, partition_index=following)
            break
    return response


def _is_valid(cursor: Cursor, names: list[str], *, named: bool) -> bool:
    """A cursor points to one of the topics that the request names, if it names any."""
    if cursor.partition_index < 0:
        return False
    return not named or (bool(names) and names[0] == cursor.topic_name)


def _describe(
    topic: TopicImage, first: int, end: int, reachable: ReachableBrokers
) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for number in range(first, min(end, len(topic.partitions))):
        described = reachable.describe(topic.partitions[number])
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=described.error,
                partition_index=number,
                leader_id=described.leader,
                leader_epoch=described.leader_epoch,
                replica_nodes=described.replicas,
                isr_nodes=described.isr,
                # Replicas outside the ISR that may lead all the same are a thing of KRaft.
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=described.offline,
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        validate_topic_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=code,
        is_internal=is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _refusal(names: list[str]) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name=name, error_code=ErrorCode.INVALID_REQUEST)
            for name in names
        ]
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_TOPIC_PARTITIONS], handle)
