"""The message formats before record batches: magic 0 and 1.

    offset 8, size 4, CRC-32 4, magic 1, attributes 1, [timestamp 8, in magic 1],
    key length 4, key, value length 4, value

The size counts what follows it, the CRC (zlib's) covers what follows it, a length of -1 is null.
A message set is nothing but messages one after the other. Compression wraps a set: the value of
the outer message, whose key is null, is the compressed inner set. The formats differ in what the
wrapper means:

- magic 0: inner offsets are absolute, and there are no timestamps.
- magic 1: inner offsets count from 0 and the wrapper's offset is that of the last inner message, so
  that a broker could assign offsets without recompressing. A wrapper with the log-append-time bit
  gives its timestamp to all inner messages.

Nobody has written these since Kafka 0.11, but logs, and clients of that age, still hold them.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from headwater.wire.records import lz4_frame
from headwater.wire.records.batch_header import LOG_OVERHEAD
from headwater.wire.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    compression_of,
    decompress,
)
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import NO_TIMESTAMP, Buffer, Record
from headwater.wire.records.timestamp_type import TimestampType

MAGIC_V0 = 0
MAGIC_V1 = 1

#: By magic: CRC, magic, attributes, the timestamp if there is one, and two lengths.
MESSAGE_SIZES_MIN = (14, 22)

_LOG_APPEND_TIME_BIT = 0x08

_PREFIX = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CRC_SIZE = 4


class Message(NamedTuple):
    """One message as it stands in the set, a wrapper not yet opened."""

    offset: int
    size_bytes: int  # what the size field says: everything after it
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def is_append_time(self) -> bool:
        return self.attributes & _LOG_APPEND_TIME_BIT != 0


def read_message_size(buffer: Buffer, position: int) -> int:
    """The size field of the message at `position`, which must have been read before."""
    size: int = _LENGTH.unpack_from(buffer, position + 8)[0]
    return size


def read_message(buffer: Buffer, position: int = 0, *, check_crc: bool = True) -> Message:
    """The message at `position`, all of whose lengths agree with each other."""
    left = len(buffer) - position
    if left < _PREFIX.size:
        raise CorruptRecordError(f"No message fits the {max(0, left)} bytes at {position}.")
    offset, size, crc, magic, attributes = _PREFIX.unpack_from(buffer, position)
    if magic not in (MAGIC_V0, MAGIC_V1):
        raise CorruptRecordError(f"The message at position {position} has magic {magic}.")
    if not MESSAGE_SIZES_MIN[magic] <= size <= left - LOG_OVERHEAD:
        raise CorruptRecordError(
            f"The message at position {position} claims {size} bytes, "
            f"of which {left - LOG_OVERHEAD} are there."
        )
    end = position + LOG_OVERHEAD + size
    view = memoryview(buffer)[:end]
    if check_crc and zlib.crc32(view[position + LOG_OVERHEAD + _CRC_SIZE :]) != crc:
        raise CorruptRecordError(
            f"The checksum of the message at position {position} (offset {offset}) does not match."
        )
    field = position + _PREFIX.size
    timestamp = NO_TIMESTAMP
    if magic == MAGIC_V1:
        (timestamp,) = _TIMESTAMP.unpack_from(view, field)
        field += _TIMESTAMP.size
    key, field = _read_bytes(view, field, "key")
    value, field = _read_bytes(view, field, "value")
    if field != end:
        raise InvalidRecordError(f"{end - field} bytes follow the value of a message.")
    return Message(offset, size, magic, attributes, timestamp, key, value)


def _read_bytes(view: memoryview, position: int, what: str) -> tuple[bytes | None, int]:
    start = position + _LENGTH.size
    left = len(view) - start
    if left < 0:
        raise InvalidRecordError(f"A message has no room for the length of its {what}.")
    (length,) = _LENGTH.unpack_from(view, position)
    if length == -1:
        return None, start
    if not 0 <= length <= left:
        raise InvalidRecordError(f"A {what} claims {length} bytes where {left} are left.")
    return bytes(view[start : start + length]), start + length


def decode_message(
    buffer: Buffer,
    position: int = 0,
    *,
    max_decompressed_bytes: int = DECOMPRESSED_BYTES_MAX,
    check_crc: bool = True,
) -> list[Record]:
    """The record that stands at `position`, or those that the wrapper there holds."""
    message = read_message(buffer, position, check_crc=check_crc)
    compression = compression_of(message.attributes)
    if compression is Compression.NONE:
        return [Record(message.offset, message.timestamp, message.key, message.value)]
    if message.value is None:
        raise InvalidRecordError("A compressed message has no value.")
    wrapped = message.value
    if compression is Compression.LZ4 and message.magic == MAGIC_V0:
        wrapped = lz4_frame.with_standard_checksum(wrapped)
    return _unwrap(message, decompress(compression, wrapped, max_decompressed_bytes), check_crc)


def _unwrap(wrapper: Message, data: bytes, check_crc: bool) -> list[Record]:
    records: list[Record] = []
    position = 0
    append_time = wrapper.magic == MAGIC_V1 and wrapper.is_append_time
    while position < len(data):
        message = read_message(data, position, check_crc=check_crc)
        position += LOG_OVERHEAD + message.size_bytes
        if message.magic != wrapper.magic:
            raise InvalidRecordError(
                f"A message of magic {wrapper.magic} wraps one of magic {message.magic}."
            )
        if compression_of(message.attributes) is not Compression.NONE:
            raise InvalidRecordError("A compressed message wraps another compressed one.")
        timestamp = wrapper.timestamp if append_time else message.timestamp
        records.append(Record(message.offset, timestamp, message.key, message.value))
    if not records:
        raise InvalidRecordError("A compressed message wraps no messages.")
    # Some versions of librdkafka left the wrapper's offset at 0, to mean that the set starts there.
    if wrapper.magic == MAGIC_V0 or wrapper.offset == 0:
        return records
    base_offset = wrapper.offset - records[-1].offset
    if base_offset < 0 or not all(0 <= record.offset <= wrapper.offset for record in records):
        raise InvalidRecordError(
            f"A wrapper whose last offset is {wrapper.offset} holds messages with the relative "
            f"offsets {records[0].offset} to {records[-1].offset}."
        )
    return [record._replace(offset=base_offset + record.offset) for record in records]


def encode_legacy(
    records: Sequence[Record],
    *,
    magic: int,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    compression_level: int | None = None,
) -> bytes:
    """A message set, wrapped into one message if compressed. It has no place for headers.

    With log append time in a wrapper, the largest of the timestamps becomes that of all records.
    """
    append_time = magic == MAGIC_V1 and timestamp_type is TimestampType.LOG_APPEND_TIME
    attributes = _LOG_APPEND_TIME_BIT if append_time else 0
    if compression is Compression.NONE:
        return b"".join([_encode_message(record, magic, attributes) for record in records])
    if compression is Compression.ZSTD or not records:
        raise InvalidRecordError("Old messages know no zstd, and a wrapper may not be empty.")
    base_offset = records[0].offset if magic == MAGIC_V1 else 0
    inner = b"".join(
        [
            _encode_message(record._replace(offset=record.offset - base_offset), magic, 0)
            for record in records
        ]
    )
    value = compress(compression, inner, compression_level)
    if compression is Compression.LZ4 and magic == MAGIC_V0:
        value = lz4_frame.with_magic_0_checksum(value)
    timestamp = max([record.timestamp for record in records])
    wrapper = Record(records[-1].offset, timestamp, None, value)
    return _encode_message(wrapper, magic, attributes | compression)


def _encode_message(record: Record, magic: int, attributes: int) -> bytes:
    if record.headers:
        raise InvalidRecordError("Old messages have no place for headers.")
    covered = b"".join(
        (
            bytes((magic, attributes)),
            _TIMESTAMP.pack(record.timestamp) if magic == MAGIC_V1 else b"",
            *(
                _LENGTH.pack(-1) if field is None else _LENGTH.pack(len(field)) + field
                for field in (record.key, record.value)
            ),
        )
    )
    prefix = _PREFIX.pack(
        record.offset, _CRC_SIZE + len(covered), zlib.crc32(covered), magic, attributes
    )
    return prefix + covered[2:]
