"""Making a producer's batch a delayed one, if one of its records is to be delivered later.

A batch is delayed as a whole: its producer counts on its numbers, and a transaction on its place.
What of it asks for no delay is due at once, and comes as a copy like the rest.

Most batches of a topic that takes delays ask for none, and are told by a search of their bytes for
the name of a header; by their largest timestamp, where that is what counts.
"""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.storage.append.delay_request import ASKING_BYTES, read_delay_request, refusal
from headwater.storage.append.record_checks import producer_records
from headwater.storage.append.retrying import next_attempt
from headwater.storage.log_config import DelayMode, LogConfig
from headwater.wire.delayed.delayed_batch import (
    DelayedKind,
    DelayedRecord,
    decode_delayed_batch,
    delayed_change,
    delayed_message,
    encode_delayed_batch,
)
from headwater.wire.records import BatchHeader, Buffer, Compression, read_section


def delay_batch(
    data: Buffer,
    position: int,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    max_decompressed_bytes: int,
    partition: TopicPartition,
) -> bytes | None:
    """The delayed batch that a producer's becomes; None if it stays what it is.

    Raises `InvalidRecordError` for a delay that cannot be had.
    """
    if not _asks(data, position, header, config, now_ms, max_decompressed_bytes):
        return None
    rules = config.delay
    codec = header.compression
    delayed: list[DelayedRecord] = []
    is_asked = False
    for number, record in enumerate(
        producer_records(data, position, header, max_decompressed_bytes)
    ):
        try:
            asked = read_delay_request(record, partition, rules, now_ms)
            if rules.mode is DelayMode.RETRY and not asked.is_cancel:
                record, asked = next_attempt(record, rules, now_ms)
        except ValueError as error:
            raise refusal(str(error), number) from None
        if asked.is_cancel:
            is_asked = True
            delayed.append(
                delayed_change(
                    record.offset,
                    DelayedKind.CANCEL,
                    original=asked.original,
                    sender_id=asked.sender_id,
                )
            )
            continue
        is_asked = is_asked or asked.due_ms is not None
        delayed.append(
            delayed_message(
                record,
                now_ms if asked.due_ms is None else asked.due_ms,
                expires_ms=asked.expires_ms,
                sender_id=asked.sender_id,
                codec=codec,
            )
        )
    return _encode(delayed, header, now_ms) if is_asked else None


def _asks(
    data: Buffer,
    position: int,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    max_decompressed_bytes: int,
) -> bool:
    """Whether a record of the batch may ask for something."""
    if header.is_control:
        return False
    if config.delay.mode is DelayMode.RETRY:
        return True
    if config.delay.mode is DelayMode.TIMESTAMP:
        return header.max_timestamp > now_ms
    if header.compression is Compression.NONE:
        if isinstance(data, memoryview):
            data = bytes(data[position : position + header.size_bytes])
            position = 0
        return data.find(ASKING_BYTES, position, position + header.size_bytes) >= 0
    return ASKING_BYTES in read_section(data, position, header, max_decompressed_bytes)


def not_due_before(batch: Buffer, header: BatchHeader, due_ms: int) -> bytes | None:
    """The delayed batch with no due time before that; None if it has none anyway.

    A message that comes when others have been delivered that were due later has its place behind
    them: what was delivered last says how far the partition is (see `OrderKey`).
    """
    delayed = decode_delayed_batch(batch, check_crc=False)
    if all(each.due_ms >= due_ms for each in delayed):
        return None
    later = [each._replace(due_ms=max(each.due_ms, due_ms)) for each in delayed]
    return _encode(later, header, header.max_timestamp)


def _encode(delayed: list[DelayedRecord], header: BatchHeader, append_ms: int) -> bytes:
    return encode_delayed_batch(
        delayed,
        append_ms=append_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
