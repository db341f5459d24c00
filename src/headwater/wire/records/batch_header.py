"""The header-only view of a record batch (magic 2): the broker's hot path.

A batch is opaque bytes behind 61 bytes of header. Everything that a broker must know to store,
index, replicate and serve it stands there, so no record is looked at:

    offset  field                covered by the CRC
       0    base offset          no: the leader assigns it
       8    batch length         no: bytes that follow this field
      12    leader epoch         no: the leader assigns it
      16    magic                no
      17    CRC-32C              of everything after itself
      21    attributes           yes: bits 0-2 compression, 3 timestamp type, 4 transactional,
      23    last offset delta    yes       5 control, 6 delete horizon
      27    base timestamp       yes (with bit 6 it is the delete horizon instead)
      35    max timestamp        yes
      43    producer id          yes
      51    producer epoch       yes
      53    base sequence        yes
      57    record count         yes

Three steps, each optional for a caller that knows better: `read_batch_header` needs the header's
bytes only and trusts nothing but the length and magic; `validate_batch` needs the whole batch and
checks all that can be checked without records; the patch functions write into the caller's buffer.
Fields that the CRC leaves out are patched for free, which is why the format leaves them out.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from headwater.wire.records.compression import Compression, compression_of
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import Buffer
from headwater.wire.records.timestamp_type import TimestampType

HEADER_SIZE = 61
LOG_OVERHEAD = 12
MAGIC_V2 = 2
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1

TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

#: A record of no key, no value and no headers: a length, attributes, two deltas, three lengths.
RECORD_SIZE_MIN = 7

_OFFSET_MAX = 0x7FFF_FFFF_FFFF_FFFF
_SEQUENCE_MODULUS = 0x8000_0000

HEADER_STRUCT = struct.Struct(">qiibIhiqqqhii")
_unpack_header = HEADER_STRUCT.unpack_from
_new_tuple = tuple.__new__
_pack_long_into = struct.Struct(">q").pack_into
_pack_int_into = struct.Struct(">i").pack_into
_pack_short_into = struct.Struct(">h").pack_into
_pack_unsigned_into = struct.Struct(">I").pack_into


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """All bytes of the batch, from its base offset to its last record."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """Raises `UnsupportedCompressionError` for a code that names no codec."""
        return compression_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & TIMESTAMP_TYPE_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_delayed(self) -> bool:
        """Whether its records wait for their time: see `delayed`.

        The header tells: a marker is transactional and has no sequence number, and no other control
        batch gets into a partition's log.
        """
        attributes = self.attributes
        return attributes & CONTROL_BIT != 0 and (
            attributes & TRANSACTIONAL_BIT == 0 or self.base_sequence >= 0
        )

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number; after 2^31 - 1 they go on at 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on compaction may drop this batch's tombstones, once it has decided that."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; only its own bytes must be there, not the whole batch."""
    try:
        fields = _unpack_header(buffer, position)
    except struct.error:
        raise CorruptRecordError(
            f"A batch header takes {HEADER_SIZE} bytes, but at position {position} there are "
            f"only {max(0, len(buffer) - position)}."
        ) from None
    if fields[3] != MAGIC_V2:
        raise CorruptRecordError(
            f"The batch at position {position} has magic {fields[3]} instead of {MAGIC_V2}."
        )
    if fields[1] < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptRecordError(
            f"The batch at position {position} has the length {fields[1]}, "
            f"which is less than its header takes."
        )
    return _new_tuple(BatchHeader, fields)


def iter_batch_headers(
    buffer: Buffer, *, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch; a batch that does not end before `end` is an error."""
    end = len(buffer) if end is None else end
    position = start
    while position < end:
        header = read_batch_header(buffer, position)
        next_position = position + LOG_OVERHEAD + header.batch_length
        if next_position > end:
            raise _cut_short(position, header, end - position)
        yield position, header
        position = next_position


def crc_is_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the whole batch is there and its checksum matches."""
    end = position + header.size_bytes
    return end <= len(buffer) and header.crc == _crc_of(buffer, position, end)


def validate_batch(
    buffer: Buffer, position: int, header: BatchHeader, *, check_crc: bool = True
) -> None:
    """Check everything that the header says against itself and against the bytes.

    This holds for any batch in any log: a compacted one may have fewer records than offsets. What a
    producer must keep to beyond that is the leader's to check.
    """
    # All fields at once: a property or a name for each would cost more than the checks.
    base_offset, length, _, _, crc, attributes, last_offset_delta, _, _, _, _, _, count = header
    left = len(buffer) - position
    size = length + LOG_OVERHEAD
    if size > left:
        raise _cut_short(position, header, left)
    if check_crc and crc != (computed := _crc_of(buffer, position, position + size)):
        raise CorruptRecordError(
            f"The batch at position {position} (base offset {base_offset}) has the checksum "
            f"{crc:#010x}, but its bytes give {computed:#010x}."
        )
    compression = compression_of(attributes)
    span = last_offset_delta + 1
    if span <= 0 or base_offset < 0 or base_offset > _OFFSET_MAX - span:
        raise InvalidRecordError(
            f"The batch at position {position} spans offsets {base_offset} to "
            f"{header.last_offset}, which is no valid range."
        )
    if not 0 <= count <= span:
        raise InvalidRecordError(
            f"The batch at position {position} claims {count} records for {span} offsets."
        )
    records_bytes = size - HEADER_SIZE
    if compression is not Compression.NONE:
        fits = records_bytes > 0 or count == 0
    else:
        fits = records_bytes >= count * RECORD_SIZE_MIN and (count > 0 or records_bytes == 0)
    if not fits:
        raise InvalidRecordError(
            f"The batch at position {position} claims {count} records in {records_bytes} bytes."
        )


def patch_batch(
    buffer: bytearray | memoryview,
    position: int,
    *,
    base_offset: int | None = None,
    leader_epoch: int | None = None,
) -> None:
    """Write what the leader assigns; the CRC does not cover it."""
    if base_offset is not None:
        _pack_long_into(buffer, position, base_offset)
    if leader_epoch is not None:
        _pack_int_into(buffer, position + LOG_OVERHEAD, leader_epoch)


def patch_log_append_time(
    buffer: bytearray | memoryview, position: int, header: BatchHeader, timestamp_ms: int
) -> None:
    """Make `timestamp_ms` the time of every record, by the leader's clock.

    The records keep their deltas, which readers ignore from then on. The CRC is computed anew.
    """
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    _pack_short_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _pack_long_into(buffer, position + MAX_TIMESTAMP_POSITION, timestamp_ms)
    write_crc(buffer, position, header.size_bytes)


def patch_max_timestamp(
    buffer: bytearray | memoryview, position: int, header: BatchHeader, timestamp_ms: int
) -> None:
    """Correct what the header says of its records' times. The CRC is computed anew."""
    _pack_long_into(buffer, position + MAX_TIMESTAMP_POSITION, timestamp_ms)
    write_crc(buffer, position, header.size_bytes)


def patch_create_time(buffer: bytearray | memoryview, position: int, header: BatchHeader) -> None:
    """Say that the records' times are their producer's, which the batch denied."""
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    _pack_short_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    write_crc(buffer, position, header.size_bytes)


def write_crc(buffer: bytearray | memoryview, position: int, size_bytes: int) -> None:
    """Compute the checksum of the whole batch at `position` and put it into its place."""
    crc = _crc_of(buffer, position, position + size_bytes)
    _pack_unsigned_into(buffer, position + CRC_POSITION, crc)


def _crc_of(buffer: Buffer, position: int, end: int) -> int:
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])


def _cut_short(position: int, header: BatchHeader, left: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"The batch at position {position} claims {header.size_bytes} bytes, "
        f"of which {left} are there."
    )
