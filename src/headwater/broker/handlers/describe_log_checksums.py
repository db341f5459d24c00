"""DescribeLogChecksums (private key 10011): what a replica holds, so that replicas can be compared.

Any broker that has a replica answers, leader or not. Compacted topics are refused: each broker
compacts for itself, at other times, and what it removes it may have removed alone.
"""

from __future__ import annotations

from headwater.audit.log_checksums import LogChecksums, read_checksums
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.storage.partition_log import PartitionLog
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.describe_log_checksums import (
    ChecksumRun,
    DescribeLogChecksumsRequest,
    DescribeLogChecksumsResponse,
)
from headwater.wire.records import CorruptRecordError


async def handle(
    request: DescribeLogChecksumsRequest, context: RequestContext
) -> DescribeLogChecksumsResponse:
    try:
        return await _describe(request, context)
    except KafkaError as error:
        return DescribeLogChecksumsResponse(error_code=error.code, error_message=str(error))


async def _describe(
    request: DescribeLogChecksumsRequest, context: RequestContext
) -> DescribeLogChecksumsResponse:
    log = context.broker.partitions.get(request.topic, request.partition_index).log
    if log.config.is_compacted:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{request.topic} is compacted: its replicas may rightly differ.",
        )
    checksums = LogChecksums(request.from_offset, max(1, request.run_offsets))
    if (request.from_offset, request.to_offset) != (-1, -1):
        _check(request, log)
        try:
            await read_checksums(log, checksums, request.to_offset, context.broker.run_in_thread)
        except (OSError, CorruptRecordError) as error:
            if request.from_offset >= log.log_start_offset:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"The log cannot be read: {error}"
                ) from None
            # It was deleted meanwhile, and the answer's bounds say so.
    return DescribeLogChecksumsResponse(
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        next_offset=checksums.next_offset,
        runs=[ChecksumRun(**run._asdict()) for run in checksums.runs],
    )


def _check(request: DescribeLogChecksumsRequest, log: PartitionLog) -> None:
    if request.run_offsets < 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A run cannot have {request.run_offsets} offsets: it must be 1 or more.",
        )
    if not 0 <= request.from_offset <= request.to_offset <= log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offsets from {request.from_offset} to {request.to_offset} are not in front of the "
            f"high watermark, {log.high_watermark}.",
        )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_LOG_CHECKSUMS], handle)
