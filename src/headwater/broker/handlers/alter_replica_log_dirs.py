"""AlterReplicaLogDirs (key 34): move logs between a broker's directories.

The answer means that a move has begun, or that there is nothing to move; it goes on in the
background, and DescribeLogDirs shows how far it is. A partition of another broker is answered with
REPLICA_NOT_AVAILABLE.
"""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            result = results.setdefault(
                topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name)
            )
            for number in topic.partitions:
                code = _move(context, TopicPartition(topic.name, number), directory.path)
                result.partitions.append(
                    AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
                )
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(context: RequestContext, partition: TopicPartition, path: str) -> ErrorCode:
    broker = context.broker
    try:
        if broker.directories.directory_at(path).is_cordoned:
            reason = f"The log directory {path} is cordoned."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        _check_is_here(broker, partition)
        broker.directories.moves.start(partition, path, broker.clock.wall_ms())
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def _check_is_here(broker: BrokerContext, partition: TopicPartition) -> None:
    try:
        broker.partitions.get(*partition)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, str(error)) from None
        raise


API = ApiHandler(CARDS[ApiKey.ALTER_REPLICA_LOG_DIRS], handle)
