"""DescribeLogDirs (key 35): what lies in which log directory.

A directory whose disk failed is answered with KAFKA_STORAGE_ERROR. A copy that is on its way to
another directory is marked as a future replica, and its lag counts what is missing to the end of
the log that serves.
"""

from collections.abc import Iterable, Mapping

from headwater.base.errors import ErrorCode
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.storage.directories.log_directory import LogDirectory
from headwater.storage.partition_log import PartitionLog
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    return DescribeLogDirsResponse(
        results=[
            _describe(directory, wanted, context)
            for directory in context.broker.directories.directories
        ]
    )


def _describe(
    directory: LogDirectory, wanted: Mapping[str, set[int]] | None, context: RequestContext
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path, is_cordoned=directory.is_cordoned)
    if not directory.is_online:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.total_bytes = directory.files.total_bytes(directory.path)
    result.usable_bytes = directory.files.free_bytes(directory.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for log, is_future in _logs(directory):
        topic, partition = log.partition
        if wanted is None or partition in wanted.get(topic, ()):
            found = topics.setdefault(topic, DescribeLogDirsTopic(name=topic))
            found.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition,
                    partition_size=log.size_bytes,
                    offset_lag=_lag(log, context.broker, is_future=is_future),
                    is_future_key=is_future,
                )
            )
    result.topics = list(topics.values())
    return result


def _logs(directory: LogDirectory) -> Iterable[tuple[PartitionLog, bool]]:
    yield from ((log, False) for log in directory.logs.values())
    yield from ((log, True) for log in directory.future_logs.values())


def _lag(log: PartitionLog, broker: BrokerContext, *, is_future: bool) -> int:
    """How far a log is behind: of a copy, the log that serves; of that, its high watermark."""
    if not is_future:
        return max(0, log.high_watermark - log.log_end_offset)
    move = broker.directories.moves.get(log.partition)
    return 0 if move is None else max(0, move.current.log_end_offset - log.log_end_offset)


API = ApiHandler(CARDS[ApiKey.DESCRIBE_LOG_DIRS], handle)
