"""What a producer's records must be before a log looks at them.

A partition's share of a produce request is exactly one batch of the current format, and zstd is for
producers that speak version 7 or later of Produce: an older consumer could not read it.
"""

from __future__ import annotations

from typing import Final

from headwater.wire.records import (
    LOG_OVERHEAD,
    MAGIC_V2,
    Buffer,
    Compression,
    InvalidRecordError,
    UnsupportedCompressionError,
)
from headwater.wire.schema import Region

#: Where in a batch its magic and the low byte of its attributes are.
_MAGIC_POSITION: Final = 16
_ATTRIBUTES_POSITION: Final = 22
_LENGTH_POSITION: Final = 8
_COMPRESSION_MASK: Final = 0x07
_ZSTD_SINCE_VERSION: Final = 7


def check_partition_records(records: Buffer | Region | None, api_version: int) -> Buffer:
    """The records as bytes; raises `InvalidRecordError` or `UnsupportedCompressionError`."""
    if not isinstance(records, (bytes, bytearray, memoryview)) or not records:
        raise InvalidRecordError("A produce request must bring a record batch for each partition.")
    if len(records) <= _ATTRIBUTES_POSITION or records[_MAGIC_POSITION] != MAGIC_V2:
        raise InvalidRecordError("Only record batches with magic 2 are accepted.")
    batch_length = int.from_bytes(records[_LENGTH_POSITION:LOG_OVERHEAD], "big", signed=True)
    if LOG_OVERHEAD + batch_length < len(records):
        raise InvalidRecordError("A partition takes exactly one record batch of a request.")
    if (
        api_version < _ZSTD_SINCE_VERSION
        and records[_ATTRIBUTES_POSITION] & _COMPRESSION_MASK == Compression.ZSTD
    ):
        raise UnsupportedCompressionError("Produce requests may use zstd from version 7 on.")
    return records
