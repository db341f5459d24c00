"""From a records section to the batch that a producer sends, and to the same with another identity.

A producer's batch counts its offsets from 0 and leaves the leader epoch open: both are the leader's
to assign. Whoever had to take a new producer id or epoch sends the same records under it:
`reassign` writes it over the old one, without compressing or encoding anything again.
"""

import struct
from typing import Final

from headwater.base.checks import check
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    Compression,
    InvalidRecordError,
    compress,
)
from headwater.wire.records.batch_header import HEADER_STRUCT, TRANSACTIONAL_BIT, write_crc
from headwater.wire.records.record import Buffer

_PRODUCER_POSITION: Final = 43
_NO_LEADER_EPOCH: Final = -1
_pack_producer_into = struct.Struct(">qhi").pack_into


def assemble_batch(
    section: Buffer,
    *,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    compression: Compression,
    compression_level: int | None,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    has_checksum: bool = True,
) -> bytearray:
    """The whole batch of these records; the checksum may be left to `reassign`."""
    check(record_count > 0, "a producer sends no batch without records")
    if compression is not Compression.NONE:
        section = compress(compression, section, compression_level)
    batch = bytearray(HEADER_SIZE)
    try:
        HEADER_STRUCT.pack_into(
            batch,
            0,
            0,
            HEADER_SIZE - LOG_OVERHEAD + len(section),
            _NO_LEADER_EPOCH,
            MAGIC_V2,
            0,
            compression | (TRANSACTIONAL_BIT if is_transactional else 0),
            record_count - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    except struct.error as error:
        raise InvalidRecordError(f"A field does not fit the batch header: {error}.") from None
    batch += section
    if has_checksum:
        write_crc(batch, 0, len(batch))
    return batch


def reassign(batch: bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Make it a batch of another producer, epoch or sequence, with the checksum for that."""
    check(len(batch) > HEADER_SIZE, "a batch to reassign has %d bytes", len(batch))
    _pack_producer_into(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    write_crc(batch, 0, len(batch))
