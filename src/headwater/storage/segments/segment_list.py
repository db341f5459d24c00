"""A log's segments in order of base offset: the map that finds the segment of an offset."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from headwater.base.checks import check
from headwater.storage.segments.segment import LogSegment


class UnfinishedChange(Protocol):
    """A change of the segments that waits for the disk."""

    def finish(self) -> bool: ...


class SegmentList:
    """Sorted, never empty once loaded. The last one is the active segment."""

    def __init__(self) -> None:
        self._base_offsets: list[int] = []
        self._segments: list[LogSegment] = []
        #: Whether a segment that another follows was seen to have hidden batches.
        self._had_hidden = False

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> LogSegment:
        return self._segments[number]

    @property
    def active(self) -> LogSegment:
        return self._segments[-1]

    @property
    def sealed(self) -> list[LogSegment]:
        return self._segments[:-1]

    @property
    def has_hidden(self) -> bool:
        """Whether there may be hidden batches; once there were it stays so."""
        return self._had_hidden or self._segments[-1].hidden is not None

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def floor_number(self, offset: int) -> int:
        """The number of the last segment that starts at or before `offset`, -1 if none does."""
        return bisect_right(self._base_offsets, offset) - 1

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segment that holds `offset` and all behind it."""
        return self._segments[max(self.floor_number(offset), 0) :]

    def get(self, base_offset: int) -> LogSegment | None:
        number = self.floor_number(base_offset)
        if number >= 0 and self._base_offsets[number] == base_offset:
            return self._segments[number]
        return None

    def add(self, segment: LogSegment) -> None:
        number = self.floor_number(segment.base_offset) + 1
        check(
            number == 0 or self._base_offsets[number - 1] != segment.base_offset,
            "there is a segment at %d already",
            segment.base_offset,
        )
        # What was the last one until now has all that it will ever have.
        last = self._segments[-1] if self._segments else segment
        if last.hidden is not None or segment.hidden is not None:
            self._had_hidden = True
        self._base_offsets.insert(number, segment.base_offset)
        self._segments.insert(number, segment)

    def remove(self, segment: LogSegment) -> None:
        number = self.floor_number(segment.base_offset)
        check(
            number >= 0 and self._segments[number] is segment,
            "the segment at %d is not of this log",
            segment.base_offset,
        )
        del self._base_offsets[number]
        del self._segments[number]

    def next_base_offset(self, segment: LogSegment) -> int | None:
        """Where the segment behind this one starts; None for the active one."""
        number = self.floor_number(segment.base_offset) + 1
        return self._base_offsets[number] if number < len(self._base_offsets) else None
