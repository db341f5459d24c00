"""The hidden index (`.hiddenindex`): where in a segment the batches stand that consumers never see.

An entry is a *hidden stretch*, delayed batches without another between them: the relative offset of
the first one, the relative offset behind the last one, the position of the first, the position
behind the last, 4 bytes each, and 8 bytes of the largest batch time of all hidden batches up to
there. All but the last field rise from entry to entry, so that a stretch is found by halving.

Like the other indexes it can be rebuilt from the log, and is after an unclean stop.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from headwater.storage.disk.handles import HandleCache
from headwater.storage.indexes.index_file import IndexFile
from headwater.wire.records import NO_TIMESTAMP

#: The index never makes a segment roll: positions end long before it could.
_SIZE_BYTES_MAX: Final = 2**63 - 1
_FIRST_OFFSET: Final = 0
_END: Final = 3


class HiddenStretch(NamedTuple):
    """Hidden batches without another between them."""

    first_offset: int
    #: The offset behind them.
    next_offset: int
    position: int
    end: int
    #: The largest batch time of these and of all hidden batches of the segment in front of them.
    largest_ms: int


class HiddenIndex(IndexFile[HiddenStretch]):
    entry_struct = struct.Struct(">IIIIq")

    def __init__(self, handles: HandleCache, path: str, base_offset: int) -> None:
        super().__init__(handles, path, base_offset, _SIZE_BYTES_MAX)

    def _pack(self, entry: HiddenStretch) -> bytes:
        first_offset, next_offset, position, end, largest_ms = entry
        base = self.base_offset
        return self.entry_struct.pack(
            first_offset - base, next_offset - base, position, end, largest_ms
        )

    def _unpack(self, raw: tuple[int, ...]) -> HiddenStretch:
        first, following, position, end, largest_ms = raw
        base = self.base_offset
        return HiddenStretch(base + first, base + following, position, end, largest_ms)

    def _start(self) -> HiddenStretch:
        return HiddenStretch(self.base_offset, self.base_offset, 0, 0, NO_TIMESTAMP)

    def append(self, stretch: HiddenStretch) -> None:
        self._append(stretch)

    def number_ending_behind(self, position: int) -> int:
        """The number of the first stretch that ends behind `position`."""
        return self._floor(position, _END, self.entry_count)[0] + 1

    def last_before(self, offset: int) -> HiddenStretch | None:
        """The last stretch that begins in front of `offset`."""
        raw = self._floor(offset - self.base_offset - 1, _FIRST_OFFSET, self.entry_count)[1]
        return None if raw is None else self._unpack(raw)

    def keep(self, count: int) -> None:
        """Remove all stretches but the first ones."""
        self._keep_entries(count)

    def sanity_check(self, size_bytes: int) -> None:
        """A cheap look that catches a file which is not that of a segment of this size."""
        if self._file.size() % self.entry_struct.size:
            raise self._corrupt("its size is not a whole number of entries")
        for number in {0, self.entry_count - 1} if self.entry_count else ():
            entry = self.entry(number)
            if not (
                entry.first_offset < entry.next_offset and entry.position < entry.end <= size_bytes
            ):
                raise self._corrupt(f"{entry} lies outside of its log")
