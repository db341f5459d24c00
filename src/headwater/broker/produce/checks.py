"""What a producer's records must be before a log looks at them.

A partition's share of a produce request is exactly one batch of the current format, and zstd is for
producers that speak version 7 or later of Produce: an older consumer could not read it.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.storage.producers.transaction_verification import TransactionalBatch
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    Buffer,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    UnsupportedCompressionError,
)
from headwater.wire.records.batch_header import HEADER_STRUCT
from headwater.wire.schema import Records

#: Where in a batch its length, its magic and the low byte of its attributes are.
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
_ATTRIBUTES_POSITION: Final = 22
#: No batch of any format is shorter.
_LENGTH_MIN: Final = 14
_COMPRESSION_MASK: Final = 0x07
_TRANSACTIONAL_BIT: Final = 0x10
#: The first version of Produce that may bring zstd.
ZSTD_SINCE: Final = 7


def check_partition_records(
    records: Records | None, api_version: int, transactional_id: str | None
) -> Buffer:
    """The one batch in `records`; bytes behind it that are no whole batch do not count.

    Raises `InvalidRecordError`, `CorruptRecordError`, `UnsupportedCompressionError`, or another
    `KafkaError` for a transaction without a transactional id.
    """
    if not isinstance(records, (bytes, bytearray, memoryview)):
        raise InvalidRecordError("A produce request must bring a record batch for each partition.")
    size = _first_batch_size(records, 0)
    if size is None:
        raise InvalidRecordError("A produce request must bring a whole batch for each partition.")
    magic = records[_MAGIC_POSITION]
    if magic != MAGIC_V2:
        if magic > MAGIC_V2:
            raise CorruptRecordError(f"There is no message format with magic {magic}.")
        raise InvalidRecordError(f"Only magic 2 is accepted, and the batch has {magic}.")
    if size < len(records):
        if _first_batch_size(records, size) is not None:
            raise InvalidRecordError("A partition takes exactly one batch of a produce request.")
        records = records[:size]
    if records[_ATTRIBUTES_POSITION] & _TRANSACTIONAL_BIT:
        _check_transaction(transactional_id)
    if (
        api_version < ZSTD_SINCE
        and records[_ATTRIBUTES_POSITION] & _COMPRESSION_MASK == Compression.ZSTD
    ):
        raise UnsupportedCompressionError("Produce requests may use zstd from version 7 on.")
    return records


def _first_batch_size(records: Buffer, position: int) -> int | None:
    """The size of the batch at `position`, None if it is not there as a whole."""
    if len(records) - position <= _ATTRIBUTES_POSITION:
        return None
    start = position + _LENGTH_POSITION
    batch_length = int.from_bytes(records[start : start + 4], "big", signed=True)
    if batch_length < _LENGTH_MIN:
        raise CorruptRecordError(f"A batch cannot have a length of {batch_length}.")
    size = LOG_OVERHEAD + batch_length
    return size if size <= len(records) - position else None


def transactional_batch(records: Buffer) -> TransactionalBatch | None:
    """What a batch that `check_partition_records` let pass says of its transaction, if it has one.

    Whether the batch is sound is for the log to say.
    """
    if not records[_ATTRIBUTES_POSITION] & _TRANSACTIONAL_BIT or len(records) < HEADER_SIZE:
        return None
    *_, producer_id, producer_epoch, base_sequence, _ = HEADER_STRUCT.unpack_from(records)
    if producer_id < 0:
        return None
    return TransactionalBatch(producer_id, producer_epoch, base_sequence)


def _check_transaction(transactional_id: str | None) -> None:
    """Only the coordinator of a transactional id can end a transaction."""
    if transactional_id is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "A batch is part of a transaction, and its request names no transactional id.",
        )
