"""The offset index (`.index`): from an offset to a place in the log file.

Sparse: one entry per `log.index.interval.bytes` of log, so a search ends with a short scan. An
entry is 4 bytes of offset relative to the segment's base and 4 bytes of position. The offset is the
*last* one of the batch that starts at the position, as in Kafka: a search for any offset up to it
therefore starts in front of the batch that holds it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headwater.base.checks import check
from headwater.storage.indexes.index_file import IndexFile, Raw

RELATIVE_OFFSET_MAX = 2**31 - 1


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(IndexFile[OffsetPosition]):
    entry_struct = struct.Struct(">ii")

    def _pack(self, entry: OffsetPosition) -> bytes:
        return self.entry_struct.pack(entry.offset - self.base_offset, entry.position)

    def _unpack(self, raw: tuple[int, ...]) -> OffsetPosition:
        return OffsetPosition(self.base_offset + raw[0], raw[1])

    def _start(self) -> OffsetPosition:
        return OffsetPosition(self.base_offset, 0)

    def append(self, offset: int, position: int) -> None:
        check(
            self.entry_count == 0 or offset > self.last_entry.offset,
            "offset %d does not come after the last indexed one, %d",
            offset,
            self.last_entry.offset,
        )
        self._append(OffsetPosition(offset, position))

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`, or the segment's start."""
        if offset >= self.last_entry.offset:
            return self.last_entry
        return self._unpack_or_start(self._search(offset)[1])

    def stretch(self, offset: int) -> tuple[int, int | None]:
        """Where the batch of `offset` starts at the earliest, and where at the latest, if known."""
        last = self.last_entry
        if offset >= last.offset:  # Consumers mostly read near the end: no search.
            return last.position, None
        _, raw, behind = self._search(offset)
        if raw is None:
            return 0, None
        if behind is None or raw[0] + self.base_offset == offset:
            return raw[1], None
        return raw[1], behind[1]

    def _search(self, offset: int) -> tuple[int, Raw | None, Raw | None]:
        relative = offset - self.base_offset
        guess = relative * self.entry_count // max(self.last_entry.offset - self.base_offset, 1)
        return self._floor(relative, 0, guess)

    def position_before(self, position: int) -> int:
        """The last indexed position that is not beyond this one, or the segment's start."""
        number = self._number_behind(position + 1) - 1
        return self._entry_or_start(number).position

    def offset_behind(self, position: int) -> int | None:
        """The first entry's offset at or behind `position`: all in front of it is smaller."""
        number = self._number_behind(position)
        return self.entry(number).offset if number < self.entry_count else None

    def truncate_to_position(self, position: int) -> None:
        """Keep only the entries of batches in front of `position`."""
        self._keep_entries(self._number_behind(position))

    def _number_behind(self, position: int) -> int:
        """The number of the first entry at or behind `position`."""
        guess = position * self.entry_count // max(self.last_entry.position, 1)
        return self._floor(position - 1, 1, guess)[0] + 1

    def sanity_check(self) -> None:
        """A cheap look that catches a file which is not an index of this segment."""
        if self._file.size() % self.entry_struct.size:
            raise self._corrupt("its size is not a whole number of entries")
        if self.entry_count and self.last_entry.offset <= self.base_offset:
            raise self._corrupt(
                f"its last offset {self.last_entry.offset} is not beyond the segment's base"
            )
