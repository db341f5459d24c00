"""Reading single messages where they lie in the log.

A delayed batch is not compressed as a whole, so one record of it is read without the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.storage.disk.files import File
from headwater.storage.partition_log import PartitionLog
from headwater.wire.delayed.delayed_batch import DelayedRecord
from headwater.wire.delayed.delayed_reader import DelayedBatchReader
from headwater.wire.records import CorruptRecordError, InvalidRecordError

#: So much is read at a time.
_READ_BYTES_MAX: Final = 4 << 20
#: A batch is read whole for so many of its records, if it is no larger than this.
_WHOLE_COUNT_MIN: Final = 4
_WHOLE_BYTES_MAX: Final = 1 << 20


class BatchPlace(NamedTuple):
    """Where a delayed batch stands, and which offsets it has."""

    file: File
    position: int
    size: int
    base_offset: int
    last_offset: int

    def reader(self, count: int = 1) -> DelayedBatchReader:
        """Of so many records; where they are many, one read of all is less than many small ones."""
        file, start = self.file, self.position
        if count >= _WHOLE_COUNT_MIN and self.size <= _WHOLE_BYTES_MAX:
            batch = file.read_at(start, self.size)
            return DelayedBatchReader(lambda at, size: batch[at : at + size])
        return DelayedBatchReader(lambda at, size: file.read_at(start + at, size))


class MessagePlaces(NamedTuple):
    """Messages of one batch that are to be read."""

    batch: BatchPlace
    offsets: list[int]


def find_batch(log: PartitionLog, offset: int) -> BatchPlace | None:
    """The batch that holds an offset; None if the log does not go so far back, or lacks it."""
    if not log.log_start_offset <= offset < log.log_end_offset:
        return None
    number = log.segments.floor_number(offset)
    if number < 0:
        return None
    segment = log.segments[number]
    found = segment.find(offset)
    if found is None or not found.base_offset <= offset <= found.last_offset:
        return None
    return BatchPlace(segment.log, *found)


def plan_reads(log: PartitionLog, offsets: Sequence[int]) -> tuple[list[MessagePlaces], list[int]]:
    """Where messages lie, in the order of their places; and which of them the log has not."""
    places: list[MessagePlaces] = []
    lacking = []
    for offset in sorted(offsets):
        if places and places[-1].batch.last_offset >= offset:
            places[-1].offsets.append(offset)
            continue
        batch = find_batch(log, offset)
        if batch is None:
            lacking.append(offset)
        else:
            places.append(MessagePlaces(batch, [offset]))
    return places, lacking


def read_places(places: Sequence[MessagePlaces]) -> list[DelayedRecord]:
    """Read messages, one at least, but not much more than a bound; in any thread."""
    messages: list[DelayedRecord] = []
    size = 0
    for place in places:
        reader = place.batch.reader(len(place.offsets))
        for offset in place.offsets:
            message = reader.read(offset)
            messages.append(message)
            size += len(message.value)
            if size > _READ_BYTES_MAX:
                return messages
    return messages


class FoundMessage(NamedTuple):
    """A record of a delayed batch, and whether its batch is part of a transaction."""

    record: DelayedRecord
    is_transactional: bool


def find_message(log: PartitionLog, offset: int) -> FoundMessage | None:
    """What a delayed batch has at an offset, here and now; None if there is none."""
    place = find_batch(log, offset)
    if place is None:
        return None
    try:
        reader = place.reader()
        return FoundMessage(reader.read(offset), reader.is_transactional)
    except (InvalidRecordError, CorruptRecordError):
        return None


def read_message(log: PartitionLog, offset: int) -> DelayedRecord | None:
    """The same without its batch."""
    found = find_message(log, offset)
    return None if found is None else found.record
