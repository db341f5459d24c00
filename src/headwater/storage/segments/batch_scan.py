"""Walking a log file batch by batch.

Everything that must look at a whole log walks it here: recovery, compaction, `log dump`, `log
verify`. The walk reads large chunks, yields each batch's header with its bytes, and stops with
`CorruptRecordError` at the first place that does not hold a whole batch. Files written before
Kafka 0.11 hold message sets of magic 0 and 1: to the walk each message is a batch of its own, whose
one offset is the last offset it stands for.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from headwater.storage.disk.files import File
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    Buffer,
    CorruptRecordError,
    read_batch_header,
    validate_batch,
)

CHUNK_BYTES = 1 << 20
#: Offset, size and magic stand at the same place in every format.
PREFIX = struct.Struct(">qi4xb")
LEGACY_SIZE_MIN = 14  # crc, magic, attributes, and two lengths
_LEGACY_FIXED = struct.Struct(">Ibb")
_TIMESTAMP = struct.Struct(">q")


class ScannedBatch(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview


def read_entry_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of a batch of any format; the buffer must hold at least `HEADER_SIZE` bytes."""
    offset, length, magic = PREFIX.unpack_from(buffer, position)
    if magic == MAGIC_V2:
        return read_batch_header(buffer, position)
    if magic not in (0, 1) or length < LEGACY_SIZE_MIN or offset < 0:
        raise CorruptRecordError(
            f"No batch starts here: offset {offset}, length {length}, magic {magic}."
        )
    crc, _, attributes = _LEGACY_FIXED.unpack_from(buffer, position + LOG_OVERHEAD)
    timestamp = -1
    if magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position + LOG_OVERHEAD + _LEGACY_FIXED.size)
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )


def validate_entry(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Check a whole batch of any format, its checksum included."""
    if header.magic == MAGIC_V2:
        validate_batch(buffer, position, header)
        return
    covered = memoryview(buffer)[position + LOG_OVERHEAD + 4 : position + header.size_bytes]
    if zlib.crc32(covered) != header.crc:
        raise CorruptRecordError(
            f"The checksum of the message at offset {header.base_offset} fails."
        )


def scan_batches(
    file: File, start: int, end: int, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[ScannedBatch]:
    """Every batch between two positions; both must be batch boundaries of a sound log."""
    position = start
    while position < end:
        wanted = min(chunk_bytes, end - position)
        chunk = memoryview(file.read_at(position, wanted))
        at = 0
        while len(chunk) - at >= LOG_OVERHEAD:
            size = LOG_OVERHEAD + int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True)
            if size > end - position - at or size < LOG_OVERHEAD + LEGACY_SIZE_MIN:
                raise CorruptRecordError(
                    f"The batch at position {position + at} claims {size} bytes, "
                    f"of which the file holds {end - position - at}."
                )
            if at + size > len(chunk):
                break
            yield ScannedBatch(
                position + at, _header_within(chunk, at, size), chunk[at : at + size]
            )
            at += size
        if at == 0:
            if len(chunk) < max(wanted, LOG_OVERHEAD):
                raise CorruptRecordError(f"The file ends in the batch at position {position}.")
            # One batch larger than the chunk: read it whole, if it begins like a batch at all.
            _header_within(chunk, 0, len(chunk))
            chunk_bytes = max(chunk_bytes, size)
        position += at


def _header_within(chunk: memoryview, at: int, size: int) -> BatchHeader:
    if size >= HEADER_SIZE:
        return read_entry_header(chunk, at)
    # A legacy message may be shorter than a v2 header: give the reader room.
    return read_entry_header(bytes(chunk[at : at + size]).ljust(HEADER_SIZE, b"\0"))
