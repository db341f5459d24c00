"""Offsets that a task has sent back, as ranges: which letters are done, in little room.

Letters are read in the order of their offsets, so ranges only grow at their end. They are kept in
chunks, and only the last chunk changes: however many ranges there are, little is written each time.
A range goes over offsets that are no letters (marks of transactions, gaps): it ends where a letter
was read that was not sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

#: So many ranges are in one chunk at most: a record of some ten kilobytes.
CHUNK_RANGES_MAX: Final = 1000


class OffsetRanges:
    """Ranges to look up, from anybody and in any order."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in sorted(ranges):
            if self._ends and first <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif first < end:
                self._firsts.append(first)
                self._ends.append(end)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._firsts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._ends, strict=True)


class GrowingRanges:
    """The last chunks of one partition's ranges, while a task adds to them."""

    def __init__(self, chunk: int = 0, bounds: Sequence[int] = ()) -> None:
        #: Firsts and ends in turn, by the number of the chunk; what is older is written for good.
        self._chunks: dict[int, list[int]] = {chunk: list(bounds)}
        self._last = chunk
        self._is_joined = False
        self._has_grown = False

    def sent(self, offset: int) -> None:
        self._has_grown = True
        bounds = self._chunks[self._last]
        if self._is_joined:
            bounds[-1] = offset + 1
            return
        if len(bounds) >= 2 * CHUNK_RANGES_MAX:
            self._last += 1
            bounds = self._chunks[self._last] = []
        bounds += (offset, offset + 1)
        self._is_joined = True

    def passed_over(self) -> None:
        """A letter was read that was not sent."""
        self._is_joined = False

    def copy(self) -> GrowingRanges:
        """The same without the chunks that are written for good."""
        copied = GrowingRanges(self._last, self._chunks[self._last])
        copied._is_joined = self._is_joined
        return copied

    def chunks(self) -> dict[int, list[int]]:
        """What has to be written since the copy was made."""
        return dict(self._chunks) if self._has_grown else {}


def pairs(bounds: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges of a chunk."""
    return list(zip(bounds[::2], bounds[1::2], strict=True))
