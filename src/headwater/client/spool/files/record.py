"""A record as it lies in a spool, and its bytes there.

It is a record after serialization and before partitioning, because a partition is chosen with the
cluster's help and the cluster may be away. All numbers are big-endian and of fixed width, so that
one unpacking reads all sizes:

    timestamp int64 | partition int32, -1 for none | topic size uint16 | key size int32, -1 for none
    | value size int32, -1 for none | header count uint16 | topic | key | value | headers

where a header is its key's size (int32), its value's size (int32, -1 for none), and both.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.wire.records import Header

_HEAD = struct.Struct(">qiHiiH")
_HEADER_SIZES = struct.Struct(">ii")
NO_PARTITION = -1
_ABSENT = -1
_COUNT_MAX = 0xFFFF

#: No encoded record is smaller, so that a stretch of zeros is never taken for one.
RECORD_SIZE_MIN = _HEAD.size


class InvalidSpooledRecordError(KafkaError):
    """A record that the spool's format cannot hold."""

    code = ErrorCode.INVALID_RECORD


class SpooledRecord(NamedTuple):
    topic: str
    #: None where the partitioner is to choose when the record is shipped.
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp_ms: int


def encode_record(record: SpooledRecord) -> bytes:
    topic, partition, key, value, headers, timestamp_ms = record
    topic_bytes = topic.encode()
    if len(topic_bytes) > _COUNT_MAX or len(headers) > _COUNT_MAX:
        raise InvalidSpooledRecordError(
            f"A spooled record has at most {_COUNT_MAX} headers and bytes of topic name."
        )
    head = _HEAD.pack(
        timestamp_ms,
        NO_PARTITION if partition is None else partition,
        len(topic_bytes),
        _ABSENT if key is None else len(key),
        _ABSENT if value is None else len(value),
        len(headers),
    )
    parts = [head, topic_bytes, key or b"", value or b""]
    for name, content in headers:
        # As everywhere, a key that was not UTF-8 keeps its bytes as surrogate escapes.
        name_bytes = name.encode("utf-8", "surrogateescape")
        size = _ABSENT if content is None else len(content)
        parts += (_HEADER_SIZES.pack(len(name_bytes), size), name_bytes, content or b"")
    return b"".join(parts)


def decode_record(data: bytes, position: int = 0) -> SpooledRecord:
    """What `encode_record` made bytes of; they are ours and their checksum was right."""
    timestamp_ms, partition, topic_size, key_size, value_size, header_count = _HEAD.unpack_from(
        data, position
    )
    position += _HEAD.size
    topic = data[position : position + topic_size].decode()
    position += topic_size
    key, position = _content(data, position, key_size)
    value, position = _content(data, position, value_size)
    headers: list[Header] = []
    for _ in range(header_count):
        name_size, size = _HEADER_SIZES.unpack_from(data, position)
        position += _HEADER_SIZES.size
        name = data[position : position + name_size].decode("utf-8", "surrogateescape")
        content, position = _content(data, position + name_size, size)
        headers.append((name, content))
    chosen = None if partition == NO_PARTITION else partition
    return SpooledRecord(topic, chosen, key, value, tuple(headers), timestamp_ms)


def _content(data: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    """Bytes that may be absent, and where the next ones begin."""
    if size == _ABSENT:
        return None, position
    return data[position : position + size], position + size
