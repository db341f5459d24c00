"""Batches that a producer sends again and a snapshot has forgotten: they are looked up in the log.

A producer may have five batches in flight. Those that were written but not answered come again once
the broker is back, and must be told the offsets that they have. While a log is open it remembers
five batches of each producer, but a snapshot keeps only the last one, in Kafka's format and here,
and the log in front of the snapshot is not replayed. So all of them but the last would be refused
as out of order, which a producer does not recover from; Kafka leaves it at that. But the log still
has those batches, with their producer's numbers in their headers.

The search comes only when a batch is about to be refused, so neither appends nor the opening of a
log pay for it. What it finds goes back into the producer's entry, and the append is tried again: an
entry then has what it would have without the reload, and answers the other repetitions by itself.
Found are only batches of the entry's own epoch that lead, number by number, up to the oldest one
that it remembers. So what compaction has removed ends the search, and sequence numbers that have
started over cannot be mistaken for those of two billion records ago.

What a client can cost us is bounded: `READS_MAX` reads of `READ_BYTES` each, 1 MB in all and most
often from the page cache, once for each producer that a snapshot brought, however many wrong
batches it sends. Producers that are new since the log was opened, or have written five batches
since, never cause a search, nor does a batch that lies behind what was written instead of in front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headwater.storage.disk.files import File
from headwater.storage.errors import LogStorageError
from headwater.storage.producers.entry import (
    BATCHES_RETAINED_MAX,
    SEQUENCE_MAX,
    BatchMetadata,
    ProducerEntry,
)
from headwater.storage.segments.batch_scan import LEGACY_SIZE_MIN
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_batch_header,
)

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog

READS_MAX: Final = 256
READ_BYTES: Final = 4096
#: A log can only be walked forwards: the walk back goes from one such stretch to the one before.
_STRETCH_BYTES: Final = 4 * READ_BYTES
#: Length, magic and producer id.
_PRODUCER: Final = struct.Struct(">8xi4xb26xq")


def recall_batches(log: PartitionLog, header: BatchHeader) -> None:
    """Remember what a reload forgot of a refused batch's producer, if the batch may be of that."""
    states = log.producer_states
    entry = states.entry(header.producer_id)
    if (
        entry is None
        or header.producer_epoch != entry.producer_epoch
        or not 0 < len(entry.batches) < BATCHES_RETAINED_MAX
        # A snapshot's batch is the oldest until five others have come: this one came later, and
        # what was in front of it is of another epoch, if there was anything.
        or entry.batches[0].last_offset >= states.loaded_offset
        or header.producer_id in states.recalled
        or not _lies_in_front(header, entry.batches[0])
    ):
        return
    try:
        found = _find_in_front(log, entry)
    except OSError as error:
        raise LogStorageError(f"{log.partition} could not be read: {error.strerror}.") from error
    states.recall(entry.producer_id, found)


def _lies_in_front(header: BatchHeader, oldest: BatchMetadata) -> bool:
    """Whether a batch's numbers come before those of `oldest`, by less than half of all there are.

    They go round in a circle, where everything is in front of everything else if seen from afar.
    """
    last_distance = (oldest.first_sequence - header.last_sequence) & SEQUENCE_MAX
    first_distance = (oldest.first_sequence - header.base_sequence) & SEQUENCE_MAX
    return 0 < last_distance <= first_distance <= SEQUENCE_MAX // 2


def _find_in_front(log: PartitionLog, entry: ProducerEntry) -> tuple[BatchMetadata, ...]:
    """The batches that came right before those which the entry remembers, the oldest first."""
    missing_count = BATCHES_RETAINED_MAX - len(entry.batches)
    oldest = entry.batches[0]
    found: list[BatchMetadata] = []
    for header in _WalkBack(log, entry.producer_id).headers(oldest.first_offset):
        if header.is_control and not header.is_delayed:
            continue
        if (
            header.producer_epoch != entry.producer_epoch
            or header.last_sequence != (oldest.first_sequence - 1) & SEQUENCE_MAX
            or header.last_offset < log.log_start_offset
        ):
            break
        oldest = BatchMetadata(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
        )
        found.append(oldest)
        if len(found) == missing_count:
            break
    return tuple(reversed(found))


class _WalkBack:
    """One producer's batches against the order of the log, until the reads are used up."""

    def __init__(self, log: PartitionLog, producer_id: int) -> None:
        self._segments = log.segments
        self._producer_id = producer_id
        self._reads_left = READS_MAX

    def headers(self, end_offset: int) -> Iterator[BatchHeader]:
        """Those in front of `end_offset`, the last one first."""
        last = self._segments.floor_number(end_offset)
        for number in range(last, -1, -1):
            segment = self._segments[number]
            found = segment.find(end_offset) if number == last else None
            end = segment.size_bytes if found is None else found.position
            while end > 0:
                start = segment.offset_index.position_before(end - _STRETCH_BYTES)
                try:
                    headers = self._stretch(segment.log, start, end)
                except CorruptRecordError:
                    return  # Whoever reads the records will hear of it; nothing is found here.
                if headers is None:
                    return
                yield from reversed(headers)
                end = start

    def _stretch(self, file: File, position: int, end: int) -> list[BatchHeader] | None:
        """Those between two positions; None if it takes more reads than are left."""
        headers = []
        while end - position >= HEADER_SIZE:  # In less there is only a message of an old format.
            if self._reads_left == 0:
                return None
            self._reads_left -= 1
            chunk = file.read_at(position, min(READ_BYTES, end - position))
            at, at_max = 0, len(chunk) - HEADER_SIZE
            while at <= at_max:
                length, magic, producer_id = _PRODUCER.unpack_from(chunk, at)
                if length < LEGACY_SIZE_MIN:
                    raise CorruptRecordError(f"No batch at position {position + at}.")
                if producer_id == self._producer_id and magic == MAGIC_V2:
                    headers.append(read_batch_header(chunk, at))
                at += length + LOG_OVERHEAD
            position += at
        return headers
