"""From a records section to the batch that a producer sends.

The section is not copied: header and records stay apart until they are on the wire. A producer's
batch counts its offsets from 0 and leaves the leader epoch open: both are the leader's to assign.
Whoever had to take a new producer id or epoch sends the same records under it, without compressing
or encoding anything again.
"""

import struct
from typing import Final

from crc32c import crc32c

from headwater.base.checks import check
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Compression,
    InvalidRecordError,
    compress,
)
from headwater.wire.records.batch_header import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_STRUCT,
    TRANSACTIONAL_BIT,
)
from headwater.wire.records.record import Buffer

_PRODUCER_POSITION: Final = 43
_NO_LEADER_EPOCH: Final = -1
_NO_PRODUCER_EPOCH: Final = -1
_pack_producer_into = struct.Struct(">qhi").pack_into
_pack_crc_into = struct.Struct(">I").pack_into


class AssembledBatch:
    """A batch, for nobody to be sent as long as `assign` has not been called."""

    __slots__ = ("_header", "_section")

    def __init__(self, header: bytearray, section: Buffer) -> None:
        self._header = header
        self._section = section

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Its bytes, of which the records are the last."""
        return self._header, self._section

    @property
    def size_bytes(self) -> int:
        return len(self._header) + len(self._section)

    def __bytes__(self) -> bytes:
        return b"".join(self.buffers)

    def assign(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Make it a batch of this producer, epoch and sequence, with the checksum for that."""
        header = self._header
        _pack_producer_into(header, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
        crc = crc32c(self._section, crc32c(memoryview(header)[ATTRIBUTES_POSITION:]))
        _pack_crc_into(header, CRC_POSITION, crc)


def assemble_batch(
    section: Buffer,
    *,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    compression: Compression,
    compression_level: int | None,
    is_transactional: bool,
) -> AssembledBatch:
    """The batch of these records."""
    check(record_count > 0, "a producer sends no batch without records")
    if compression is not Compression.NONE:
        section = compress(compression, section, compression_level)
    header = bytearray(HEADER_SIZE)
    try:
        HEADER_STRUCT.pack_into(
            header,
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
            NO_PRODUCER_ID,
            _NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            record_count,
        )
    except struct.error as error:
        raise InvalidRecordError(f"A field does not fit the batch header: {error}.") from None
    return AssembledBatch(header, section)
