"""Batch headers of a stretch of a log, read without their records.

Where to read is found out on the event loop, which owns the log; the reading is done in a thread, a
slice at a time. Of a large batch little more than its header is read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.storage.disk.files import File
from headwater.storage.partition_log import PartitionLog
from headwater.storage.segments.batch_scan import LEGACY_SIZE_MIN, read_entry_header
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
)
from headwater.wire.records.batch_header import HEADER_STRUCT

_unpack_header = HEADER_STRUCT.unpack_from
_new_tuple = tuple.__new__
#: Which field of a header tells the format.
_MAGIC: Final = 3

_CHUNK_BYTES: Final = 32 << 10
#: A slice has no more batches than this.
SLICE_BATCHES_MAX: Final = 4_096


class HeaderSlice(NamedTuple):
    """Headers, and the offset to go on from."""

    headers: list[BatchHeader]
    next_offset: int


class HeaderScan(NamedTuple):
    """A stretch to read: from a batch boundary to another in one segment."""

    file: File
    #: The first offset that counts. A batch that begins in front of it was counted before.
    offset: int
    position: int
    end: int
    #: No batch at or behind this offset counts.
    upper_offset: int
    #: Where it goes on if all of the stretch was read.
    next_offset: int

    def run(self) -> HeaderSlice:
        """The headers of the first batches, in any thread; raises OSError, `CorruptRecordError`."""
        headers: list[BatchHeader] = []
        offset, upper_offset = self.offset, self.upper_offset
        position, reached = self.position, offset
        while position < self.end:
            chunk = self.file.read_at(position, min(_CHUNK_BYTES, self.end - position))
            is_rest = position + len(chunk) >= self.end
            if is_rest:  # A message of an old format may be shorter than a header.
                chunk = chunk.ljust(len(chunk) + HEADER_SIZE, b"\0")
            at = 0
            while at + HEADER_SIZE <= len(chunk) and position + at < self.end:
                # Most batches are read with one call and a few comparisons.
                fields = _unpack_header(chunk, at)
                if fields[_MAGIC] == MAGIC_V2:
                    header: BatchHeader = _new_tuple(BatchHeader, fields)
                else:
                    header = read_entry_header(chunk, at)
                base_offset, length, last_offset_delta = header[0], header[1], header[6]
                if length < LEGACY_SIZE_MIN:
                    raise CorruptRecordError(f"{self.file.path} has no batch at {position + at}.")
                next_offset = base_offset + last_offset_delta + 1
                if next_offset > upper_offset:
                    is_behind = base_offset >= upper_offset
                    return HeaderSlice(headers, upper_offset if is_behind else reached)
                if base_offset >= offset:
                    headers.append(header)
                reached = next_offset
                at += LOG_OVERHEAD + length
                if len(headers) >= SLICE_BATCHES_MAX:
                    return HeaderSlice(headers, reached)
            if at == 0:
                raise CorruptRecordError(f"{self.file.path} ends in the batch at {position}.")
            position += at
        return HeaderSlice(headers, self.next_offset)


def plan_header_scan(log: PartitionLog, offset: int, upper_offset: int) -> HeaderScan | None:
    """Where to read from `offset` on; None if nothing lies there below `upper_offset`."""
    for segment in log.segments.from_offset(offset):
        if segment.base_offset >= upper_offset:
            return None
        found = segment.find(offset)
        if found is not None and found.base_offset < upper_offset:
            next_offset = min(segment.next_offset, upper_offset)
            return HeaderScan(
                segment.log, offset, found.position, segment.size_bytes, upper_offset, next_offset
            )
    return None
