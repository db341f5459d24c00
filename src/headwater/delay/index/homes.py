"""Where entries lie on disk: files by due time, each the home of a range of it.

At first the home of an entry is a file for its hour. An hour that has grown large when it comes
near is split by minutes, and a minute by seconds; what is due before the split stays where it is.
So the ranges of the homes never overlap, and every event about a message goes to the one file that
its due time leads to. A file may hold more than the range it is home of: only what is due in that
range counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from headwater.delay.index.append_files import AppendFile, AppendFiles
from headwater.delay.index.entries import (
    Marks,
    find_live,
    marked_offset,
    read_marks,
)
from headwater.wire.delayed.copies import OrderKey

SUFFIX: Final = ".delays"

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000

#: So many marks are known at a time, besides those of the home that was asked for last.
_MARKED_MAX: Final = 500_000


class Home:
    """A range of due times, and the file with what is due in it."""

    __slots__ = ("count", "end_ms", "file", "marks", "start_ms")

    def __init__(self, start_ms: int, end_ms: int, file: AppendFile, count: int = 0) -> None:
        self.start_ms = start_ms
        self.end_ms = end_ms
        self.file = file
        #: How many wait here that are not in memory. What is delivered before it came near counts
        #: until it has.
        self.count = count
        #: What was taken back; None as long as nobody has asked.
        self.marks: Marks | None = None


class Homes:
    """The homes of one index, in the order of their ranges."""

    def __init__(self, pool: AppendFiles, floor_ms: int) -> None:
        self.pool = pool
        #: Whatever was due before has one home, so that old times do not make a file an hour.
        self._floor_ms = floor_ms
        self._homes: list[Home] = []
        self._starts: list[int] = []

    def __iter__(self) -> Iterator[Home]:
        return iter(self._homes)

    @property
    def count(self) -> int:
        return sum(home.count for home in self._homes)

    def of(self, due_ms: int) -> Home:
        """The home of what is due at this time; a new one if it has none."""
        number = bisect_right(self._starts, due_ms)
        if number > 0:
            home = self._homes[number - 1]
            if due_ms < home.end_ms:
                return home
        if due_ms < self._floor_ms:
            start_ms, end_ms = 0, self._floor_ms
        else:
            start_ms = due_ms - due_ms % HOUR_MS
            end_ms = start_ms + HOUR_MS
        if number > 0:
            start_ms = max(start_ms, self._homes[number - 1].end_ms)
        if number < len(self._homes):
            end_ms = min(end_ms, self._starts[number])
        return self.add(Home(start_ms, end_ms, self.pool.create(str(start_ms), SUFFIX)))

    def add(self, home: Home) -> Home:
        number = bisect_left(self._starts, home.start_ms)
        self._homes.insert(number, home)
        self._starts.insert(number, home.start_ms)
        return home

    def append(self, due_ms: int, event: bytes, *, is_mark: bool) -> Home:
        """Where an event about what is due at this time has gone."""
        home = self.of(due_ms)
        self.pool.append(home.file, event)
        if is_mark and home.marks is not None:
            home.marks.offsets.add(marked_offset(event))
        return home

    def next_from(self, due_ms: int) -> Home | None:
        """The first home of anything that is due at this time or later."""
        number = bisect_right(self._starts, due_ms)
        if number > 0 and due_ms < self._homes[number - 1].end_ms:
            return self._homes[number - 1]
        return self._homes[number] if number < len(self._homes) else None

    def find(self, due_ms: int, offset: int) -> bytes | None:
        home = self._home_of(due_ms)
        return None if home is None else find_live(self.pool.chunks(home.file), due_ms, offset)

    def holds(self, key: OrderKey) -> bool:
        """Whether a message waits with this key, if it was told of and never had another one.

        What is older than its home was in one that is gone, where nothing waited any more; and what
        was taken back has a mark, whatever became of it then. Who asks first has the file read.
        """
        home = self._home_of(key.due_ms)
        if home is None:
            return False
        if home.marks is None:
            home.marks = read_marks(self.pool.chunks(home.file))
            if sum(len(each.marks.offsets) for each in self if each.marks) > _MARKED_MAX:
                for each in self:
                    if each is not home:
                        each.marks = None
        marks = home.marks
        return (
            marks is not None
            and key.armed_offset >= marks.begins_at
            and key.offset not in marks.offsets
        )

    def _home_of(self, due_ms: int) -> Home | None:
        home = self.next_from(due_ms)
        return None if home is None or home.start_ms > due_ms else home

    def split(self, home: Home, from_ms: int, pieces: list[Home]) -> None:
        """What is due from `from_ms` on in a home has these homes now."""
        home.end_ms = from_ms
        home.count = 0
        if from_ms <= home.start_ms:
            self._retire(home)
        for piece in pieces:
            self.pool.adopt(piece.file)
            self.add(piece)

    def retire_until(self, due_ms: int) -> None:
        """Nothing waits that is due before: files with nothing else are not needed."""
        gone = 0
        while gone < len(self._homes) and self._homes[gone].end_ms <= due_ms:
            gone += 1
        for home in self._homes[:gone]:
            self._retire(home)

    def _retire(self, home: Home) -> None:
        number = bisect_left(self._starts, home.start_ms)
        del self._homes[number]
        del self._starts[number]
        self.pool.retire(home.file)


def split_width(range_ms: int) -> int:
    """How wide the pieces of a range are: seconds, minutes, or a sixtieth of what is longer."""
    if range_ms <= MINUTE_MS:
        return SECOND_MS
    return MINUTE_MS if range_ms <= HOUR_MS else -(-range_ms // 60)
