"""Bringing near what is due soon: reading a range of due times from its home, in a thread.

The index plans it, any thread runs the plan, the index completes it. The plan reads only bytes that
were written before it was made, and a copy of the buffer. Events about the same range that come in
the meantime go to the home as ever, and are noted in the plan too, so that they follow what it
read. A range is either sorted for memory, or, where its home is large, split into smaller homes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headwater.delay.index.append_files import AppendFile, AppendFiles, read_chunks
from headwater.delay.index.entries import (
    ENTRY_BYTES,
    by_due,
    first_of,
    live_entries,
    mark_count,
    slices,
)
from headwater.delay.index.homes import SECOND_MS, SUFFIX, Home, split_width

#: A home with more than this is split before it comes near, down to seconds.
SPLIT_BYTES: Final = 1 << 20


class SideEvent(NamedTuple):
    """What happened to a message while the range of its due time was on its way."""

    due_ms: int
    entry: bytes
    #: What takes the entry back; None if it was added.
    mark: bytes | None


class AdvancePlan:
    """A range of due times of one home that is to come near."""

    def __init__(
        self, pool: AppendFiles, numbers: Iterator[int], home: Home, from_ms: int, target_ms: int
    ) -> None:
        self.home = home
        self.from_ms = from_ms
        left_ms = home.end_ms - from_ms
        self.is_split = home.file.size_bytes > SPLIT_BYTES and left_ms > SECOND_MS
        self.to_ms = home.end_ms if self.is_split else min(home.end_ms, target_ms)
        self.side: list[SideEvent] = []
        #: Sorted entries, if it is no split.
        self.run_data = b""
        #: The new homes, if it is one.
        self.pieces: list[Home] = []
        self._width_ms = split_width(left_ms)
        self._source = (pool.files, pool.path(home.file.name), home.file.size)
        self._rest = bytes(home.file.buffer)
        # The thread's own, until the plan is complete.
        self._pool = AppendFiles(pool.files, pool.directory, numbers)

    @property
    def side_count(self) -> int:
        return sum(1 if event.mark is None else -1 for event in self.side)

    def run(self) -> None:
        """Read, and sort or split; in any thread."""
        if self.is_split:
            self._split()
        else:
            self.run_data = b"".join(sorted(live_entries(self._chunks, self.from_ms, self.to_ms)))

    def _chunks(self) -> Iterable[bytes]:
        return read_chunks(*self._source, self._rest)

    def _split(self) -> None:
        width_ms, from_ms, to_ms = self._width_ms, self.from_ms, self.to_ms
        files: dict[int, AppendFile] = {}
        counts: dict[int, int] = {}
        low, high = first_of(from_ms), first_of(to_ms)
        # There may be some in the first and the last piece whose home is another.
        edges = from_ms // width_ms, (to_ms - 1) // width_ms
        for chunk in self._chunks():
            for number, data in by_due(chunk, width_ms).items():
                if number in edges:
                    data = b"".join(each for each in slices(data) if low <= each < high)
                if not data or not edges[0] <= number <= edges[1]:
                    continue
                if number not in files:
                    start_ms = max(from_ms, number * width_ms)
                    files[number] = self._pool.create(str(start_ms), SUFFIX)
                    counts[number] = 0
                self._pool.append(files[number], data)
                counts[number] += len(data) // ENTRY_BYTES - 2 * mark_count(data)
                self._pool.spill()
        self.pieces = [
            Home(
                max(from_ms, number * width_ms),
                min(to_ms, (number + 1) * width_ms),
                file,
                counts[number],
            )
            for number, file in sorted(files.items())
        ]

    def discard(self) -> None:
        """Remove what it wrote: nobody wants it any more."""
        for name in self._pool.by_name:
            self._pool.remove(name)
