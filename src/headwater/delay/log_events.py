"""What a log says about deliveries: its delayed batches, its markers and its copies, in order.

Most of a log may be neither. So batches are stepped over by their headers, and only what matters is
read as a whole. Where to read is found out on the event loop, which owns the log; the reading may
be done in a thread.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.storage.disk.files import File
from headwater.storage.partition_log import PartitionLog
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.records import (
    HEADER_SIZE,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_batch_header,
)
from headwater.wire.records.batch_header import LOG_OVERHEAD

_CHUNK_BYTES: Final = 64 << 10
#: Where a batch's magic stands, which tells the formats apart.
_MAGIC_AT: Final = 16


class LogEvent(NamedTuple):
    """A batch that matters."""

    header: BatchHeader
    data: bytes


class EventSlice(NamedTuple):
    """What matters in a piece of the log, which ends in front of `next_offset`."""

    events: list[LogEvent]
    next_offset: int


class EventRead(NamedTuple):
    """A stretch of a log to look through: from a batch boundary to another in one segment."""

    file: File
    position: int
    end: int
    #: No batch at or behind this offset counts.
    upper_offset: int
    #: What to go on from if all of the stretch was looked through.
    next_offset: int

    @property
    def size(self) -> int:
        return self.end - self.position

    def run(self, max_bytes: int) -> EventSlice:
        """What matters in the first `max_bytes` of it; in any thread."""
        events: list[LogEvent] = []
        position, stop = self.position, min(self.end, self.position + max_bytes)
        next_offset = -1
        while position < stop:
            chunk = self.file.read_at(position, min(_CHUNK_BYTES, self.end - position))
            at = 0
            while at + HEADER_SIZE <= len(chunk) and position + at < stop:
                if chunk[at + _MAGIC_AT] != MAGIC_V2:
                    next_offset = 1 + int.from_bytes(chunk[at : at + 8], "big")
                    at += LOG_OVERHEAD + int.from_bytes(chunk[at + 8 : at + 12], "big")
                    continue
                header = read_batch_header(chunk, at)
                if header.base_offset >= self.upper_offset:
                    return EventSlice(events, self.upper_offset)
                if header.is_control or header.producer_id == DELIVERY_PRODUCER_ID:
                    size = header.size_bytes
                    data = chunk[at : at + size]
                    if len(data) < size:
                        data = self.file.read_at(position + at, size)
                    if len(data) < size:
                        raise CorruptRecordError(
                            f"{self.file.path} ends in the batch at position {position + at}."
                        )
                    events.append(LogEvent(header, data))
                next_offset = header.next_offset
                at += header.size_bytes
            if at == 0:
                break  # Less than a header is left: a message of an old format.
            position += at
        if position >= self.end or next_offset < 0:
            next_offset = self.next_offset
        return EventSlice(events, next_offset)


def plan_event_read(log: PartitionLog, offset: int, upper_offset: int) -> EventRead | None:
    """Where to read from `offset` on; None if nothing lies there below `upper_offset`."""
    for segment in log.segments.from_offset(offset):
        if segment.base_offset >= upper_offset:
            return None
        found = segment.find(offset)
        if found is not None and found.base_offset < upper_offset:
            next_offset = min(segment.next_offset, upper_offset)
            return EventRead(
                segment.log, found.position, segment.size_bytes, upper_offset, next_offset
            )
    return None
