"""The time index (`.timeindex`): from a timestamp to an offset.

An entry is 8 bytes of timestamp and 4 bytes of relative offset, and says: up to this offset no
record of the segment is younger than this timestamp. Timestamps come from clients and may go
backwards; the index keeps only the running maximum, so that both columns rise.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headwater.storage.indexes.index_file import IndexFile
from headwater.wire.records import NO_TIMESTAMP


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(IndexFile[TimestampOffset]):
    entry_struct = struct.Struct(">qi")

    def _pack(self, entry: TimestampOffset) -> bytes:
        return self.entry_struct.pack(entry.timestamp, entry.offset - self.base_offset)

    def _unpack(self, raw: tuple[int, ...]) -> TimestampOffset:
        return TimestampOffset(raw[0], self.base_offset + raw[1])

    def _start(self) -> TimestampOffset:
        return TimestampOffset(NO_TIMESTAMP, self.base_offset)

    @property
    def is_full(self) -> bool:
        # One place is kept for the entry that sealing the segment adds.
        return self.entry_count >= self._entry_count_max - 1

    def append_if_later(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless no record since the last one has a later timestamp."""
        if timestamp > self.last_entry.timestamp:
            self._append(TimestampOffset(timestamp, offset))

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or before `timestamp`, or the segment's start."""
        return self._unpack_or_start(self._floor(timestamp, 0, self.entry_count)[1])

    def largest_until(self, offset: int) -> int:
        """The timestamp of the last entry at or before `offset`; -1 if there is none."""
        relative = offset - self.base_offset
        return self._unpack_or_start(self._floor(relative, 1, self.entry_count)[1]).timestamp

    def truncate_to(self, offset: int) -> None:
        """Keep only the entries in front of `offset`."""
        relative = offset - self.base_offset
        self._keep_entries(self._floor(relative - 1, 1, self.entry_count)[0] + 1)

    def sanity_check(self) -> None:
        if self._file.size() % self.entry_struct.size:
            raise self._corrupt("its size is not a whole number of entries")
        if self.entry_count:
            first = self.entry(0)
            if self.last_entry.timestamp < first.timestamp:
                raise self._corrupt("its last timestamp lies before its first")
            if self.last_entry.offset < self.base_offset:
                raise self._corrupt("its last offset lies before the segment's base")
