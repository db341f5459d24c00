"""DeleteRecords (key 21): drop the records in front of an offset.

Records of internal topics are the broker's own state, and those of a topic that is only compacted
are the latest of each key: neither can be deleted like this. The answer waits until all live
replicas have followed, or until the request's time is over.
"""

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.broker.requests.fair_turns import in_turns
from headwater.cluster.image.image import is_brokers_own
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.delayed_delete_records import (
    AwaitedDeletion,
    DelayedDeleteRecords,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_UNKNOWN_OFFSET = -1

_Outcome = AwaitedDeletion | KafkaError


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    # Of a partition that is named twice only the last offset counts, as in Kafka.
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets.setdefault(topic.name, {}).update(
            (asked.partition_index, asked.offset) for asked in topic.partitions
        )
    outcomes: dict[str, dict[int, _Outcome]] = {topic: {} for topic in offsets}
    wanted = ((topic, *each) for topic, asked in offsets.items() for each in asked.items())
    async for name, number, offset in in_turns(wanted):
        outcomes[name][number] = _delete(name, number, offset, context)
    await _wait(outcomes, request.timeout_ms, context)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[_result(number, outcome) for number, outcome in of_topic.items()],
            )
            for name, of_topic in outcomes.items()
        ]
    )


def _delete(topic: str, number: int, offset: int, context: RequestContext) -> _Outcome:
    try:
        partition = context.broker.partitions.get(topic, number)
        _check_allowed(partition)
        return AwaitedDeletion(partition, partition.delete_records(offset))
    except KafkaError as error:
        return error


def _check_allowed(partition: Partition) -> None:
    topic = partition.topic_partition.topic
    if is_brokers_own(topic):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic} is an internal topic, whose records cannot be deleted.",
        )
    config = partition.log.config
    if config.is_compacted and not config.deletes_by_retention:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{topic} is compacted only (cleanup.policy), so its records cannot be deleted.",
        )


async def _wait(
    outcomes: dict[str, dict[int, _Outcome]],
    timeout_ms: int,
    context: RequestContext,
) -> None:
    deletions = [
        outcome
        for of_topic in outcomes.values()
        for outcome in of_topic.values()
        if isinstance(outcome, AwaitedDeletion)
    ]
    operation = DelayedDeleteRecords(deletions)
    keys = [deletion.partition.topic_partition for deletion in deletions]
    parked = context.broker.parked.delete_records
    if not parked.try_complete_else_park(operation, timeout_ms, keys):
        await operation.done


def _result(number: int, outcome: _Outcome) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, AwaitedDeletion):
        if outcome.error is None:
            return DeleteRecordsPartitionResult(
                partition_index=number, low_watermark=outcome.low_watermark
            )
        outcome = outcome.error
    return DeleteRecordsPartitionResult(
        partition_index=number, low_watermark=_UNKNOWN_OFFSET, error_code=outcome.code
    )


def _deeds(_: DeleteRecordsRequest, response: DeleteRecordsResponse) -> Iterator[str]:
    deleted = [
        f"{topic.name}-{each.partition_index} (before {each.low_watermark})"
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    ]
    yield deed("deleted records of", "partition", deleted)


API = ApiHandler(CARDS[ApiKey.DELETE_RECORDS], handle, deeds=_deeds)
