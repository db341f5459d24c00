"""Reading index files from end to end, as the tools do.

The classes that serve lookups (`offset_index`, `time_index`, `transaction_index`) open an index as
part of a live segment. Here it is a file among others, perhaps damaged, perhaps of ten megabytes of
which all but the start is blank: Kafka preallocates an active segment's indexes, and a crash leaves
them at that size. Entries are read a chunk at a time, and their number is settled beforehand, so
that an index which grows meanwhile does no harm.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from headwater.storage.disk.files import File
from headwater.storage.indexes.hidden_index import HiddenIndex, HiddenStretch
from headwater.storage.indexes.offset_index import OffsetIndex, OffsetPosition
from headwater.storage.indexes.time_index import TimeIndex, TimestampOffset
from headwater.storage.indexes.transaction_index import ENTRY, AbortedTransaction

OFFSET_ENTRY = OffsetIndex.entry_struct
TIME_ENTRY = TimeIndex.entry_struct
TRANSACTION_ENTRY = ENTRY
HIDDEN_ENTRY = HiddenIndex.entry_struct

_CHUNK_ENTRIES = 8192


def count_entries(file: File, entry: struct.Struct) -> int:
    """How many entries stand in front of the blank part, found by bisection."""
    low, high = 0, file.size() // entry.size
    # A time index whose only record is of 1970 has one entry of zeros, which is not blank space.
    if high == 1 and entry is TIME_ENTRY:
        return 1
    while low < high:
        middle = (low + high) >> 1
        if file.read_at(middle * entry.size, entry.size).strip(b"\0"):
            low = middle + 1
        else:
            high = middle
    return low


def iter_offset_entries(file: File, base_offset: int, count: int) -> Iterator[OffsetPosition]:
    for relative, position in _rows(file, OFFSET_ENTRY, count):
        yield OffsetPosition(base_offset + relative, position)


def iter_time_entries(file: File, base_offset: int, count: int) -> Iterator[TimestampOffset]:
    for timestamp, relative in _rows(file, TIME_ENTRY, count):
        yield TimestampOffset(timestamp, base_offset + relative)


def iter_aborted_transactions(file: File) -> Iterator[tuple[int, AbortedTransaction]]:
    """Each entry with its version."""
    count = file.size() // TRANSACTION_ENTRY.size
    for version, *fields in _rows(file, TRANSACTION_ENTRY, count):
        yield version, AbortedTransaction(*fields)


def iter_hidden_stretches(file: File, base_offset: int) -> Iterator[HiddenStretch]:
    count = file.size() // HIDDEN_ENTRY.size
    for first, following, position, end, largest_ms in _rows(file, HIDDEN_ENTRY, count):
        yield HiddenStretch(base_offset + first, base_offset + following, position, end, largest_ms)


def floor_position(file: File, base_offset: int, count: int, offset: int) -> int:
    """Where in the log a search for `offset` starts, by this offset index."""
    low, high, found = 0, count, 0
    while low < high:
        middle = (low + high) >> 1
        raw = file.read_at(middle * OFFSET_ENTRY.size, OFFSET_ENTRY.size)
        relative, position = OFFSET_ENTRY.unpack(raw)
        if base_offset + relative <= offset:
            low, found = middle + 1, position
        else:
            high = middle
    return max(found, 0)


def _rows(file: File, entry: struct.Struct, count: int) -> Iterator[tuple[int, ...]]:
    for first in range(0, count, _CHUNK_ENTRIES):
        chunk = file.read_at(first * entry.size, min(_CHUNK_ENTRIES, count - first) * entry.size)
        whole = len(chunk) - len(chunk) % entry.size  # Shorter only if the file was cut meanwhile.
        yield from entry.iter_unpack(chunk[:whole])
