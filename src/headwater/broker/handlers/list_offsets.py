"""ListOffsets (key 2): offsets by time, and the ends of partitions.

While a new leader's high watermark is behind the start of its epoch, the end of the partition is
not known (OFFSET_NOT_AVAILABLE): it would lie in front of what consumers have read.
"""

from collections import Counter
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.replication.partition.partition import Partition
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headwater.wire.records import DecompressedTooLargeError

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

#: The version that brought each of the timestamps with a meaning of their own.
_SINCE_VERSION: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_CONSUMER: Final = -1
_NOT_AVAILABLE_SINCE: Final = 5
_READ_COMMITTED: Final = 1
_ISOLATION_LEVELS: Final = (0, _READ_COMMITTED)


class _Found(NamedTuple):
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


async def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    occurrences = Counter(
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    # A replica id is a broker's to tell: to others the log is what it is to consumers.
    if request.replica_id >= 0 and context.connection.identity.broker_id != request.replica_id:
        request.replica_id = _CONSUMER
    # A partition that is named twice is answered once, as Kafka does.
    answers: dict[str, dict[int, ListOffsetsPartitionResponse]] = {
        topic.name: {} for topic in request.topics
    }
    wanted = ((topic.name, asked) for topic in request.topics for asked in topic.partitions)
    async for name, asked in in_turns(wanted):
        number = asked.partition_index
        answer = answers[name][number] = ListOffsetsPartitionResponse(partition_index=number)
        try:
            is_repeated = occurrences[name, number] > 1
            _check(asked, request.isolation_level, context.api_version, is_repeated)
            found = _find(context.broker.partitions.get(name, number), asked, request)
            answer.offset, answer.timestamp, answer.leader_epoch = found
        except KafkaError as error:
            answer.error_code = _told(error, context.api_version)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(of_topic.values()))
            for name, of_topic in answers.items()
        ]
    )


def _check(
    asked: ListOffsetsPartition, isolation_level: int, version: int, is_repeated: bool
) -> None:
    if is_repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The request names a partition twice.")
    if isolation_level not in _ISOLATION_LEVELS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "There is no such isolation level.")
    since = _SINCE_VERSION.get(asked.timestamp) if asked.timestamp < 0 else 0
    if since is None or version < since:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The timestamp means nothing here.")


def _find(partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest) -> _Found:
    partition.check_leader(asked.current_leader_epoch)
    match asked.timestamp:
        case -1:
            _check_end_is_known(partition, request)
            return _Found(_readable_end(partition, request), leader_epoch=partition.leader_epoch)
        case -2 | -4:
            return _start(partition)
        case -5 | -6:
            return _Found()
    log, end = partition.log, _readable_end(partition, request)
    if asked.timestamp != MAX_TIMESTAMP:
        found = log.offset_for_timestamp(asked.timestamp)
    else:
        # Where all is shown later, the latest of all records is never among those that are shown.
        found = log.max_timestamp(None if log.shown_end is None else end)
    if found is None or found.offset >= end:
        _check_end_is_known(partition, request)
        return _Found()
    epoch = log.leader_epochs.epoch_for_offset(found.offset)
    return _Found(found.offset, found.timestamp, -1 if epoch is None else epoch)


def _check_end_is_known(partition: Partition, request: ListOffsetsRequest) -> None:
    """A leader may have been elected before it heard how far its predecessor let consumers read."""
    end = partition.high_watermark
    if request.replica_id == _CONSUMER and end < partition.leader_epoch_start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"{partition.topic_partition} has a new leader, which can be read up to {end} so far.",
        )


def _told(error: KafkaError, version: int) -> ErrorCode:
    code = error.code
    if isinstance(error, DecompressedTooLargeError):
        # Its own code tells a producer to split the batch, which nobody can here.
        return ErrorCode.INVALID_RECORD
    if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_SINCE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _start(partition: Partition) -> _Found:
    start = partition.log_start_offset
    epochs = partition.log.leader_epochs
    epoch = epochs.epoch_for_offset(start)
    return _Found(start, leader_epoch=partition.leader_epoch if epoch is None else epoch)


def _readable_end(partition: Partition, request: ListOffsetsRequest) -> int:
    """Where a client of this kind stops reading; another broker reads to the very end."""
    if request.replica_id != _CONSUMER:
        return partition.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.log.visible_stable_offset
    return partition.log.visible_high_watermark


API = ApiHandler(CARDS[ApiKey.LIST_OFFSETS], handle)
