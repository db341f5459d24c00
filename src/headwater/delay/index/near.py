"""What is due soon, in memory: sorted runs, and beside them what was added after they were sorted.

A *run* holds what the files had for a range of due times when that range came near, sorted, as one
string of bytes and a cursor. Runs cover ranges that follow each other. What is added later with a
due time in these ranges is *late*: it is kept by its due time, where entries come in the order of
their keys already, since what arms them has growing offsets. Removing is exact in both, so nothing
dead is kept longer than its run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from itertools import islice
from typing import Final

from headwater.delay.index.entries import ENTRY_BYTES, first_of, positions

#: About what a due time with late entries takes besides them: list, dictionary, number, buffer.
_LATE_DUE_BYTES: Final = 200


class _Run:
    """Sorted entries; `place` is the number of the first that is not delivered."""

    __slots__ = ("data", "dead", "length", "place")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.length = len(data) // ENTRY_BYTES
        self.place = 0
        #: A byte for each entry, 1 if it was removed; made when the first one is.
        self.dead: bytearray | None = None

    def entry(self, number: int) -> bytes:
        return self.data[number * ENTRY_BYTES : (number + 1) * ENTRY_BYTES]

    def number_of(self, bound: bytes) -> int:
        """How many entries are below a bound, but no fewer than were delivered."""
        return bisect_left(range(self.length), bound, lo=self.place, key=self.entry)

    def live_count(self, start: int, end: int) -> int:
        return end - start - (self.dead.count(1, start, end) if self.dead is not None else 0)

    def live(self, start: int, end: int, limit: int) -> list[bytes]:
        dead = self.dead
        if dead is None:
            return [self.entry(number) for number in range(start, min(end, start + limit))]
        numbers = (number for number in range(start, end) if not dead[number])
        return [self.entry(number) for number in islice(numbers, limit)]

    def kill(self, number: int) -> bool:
        if self.dead is None:
            self.dead = bytearray(self.length)
        was_alive = not self.dead[number]
        self.dead[number] = 1
        return was_alive

    def skip_dead(self) -> None:
        if self.dead is not None:
            alive = self.dead.find(0, self.place)
            self.place = self.length if alive < 0 else alive


class NearEntries:
    """All that waits and is due before a horizon that its owner keeps."""

    def __init__(self) -> None:
        self.count = 0
        self._runs: deque[_Run] = deque()
        self._late_dues: list[int] = []
        self._late: dict[int, bytearray] = {}

    @property
    def memory_bytes(self) -> int:
        runs = sum(len(run.data) + len(run.dead or b"") for run in self._runs)
        late = sum(map(len, self._late.values()))
        return runs + late + _LATE_DUE_BYTES * len(self._late_dues)

    # -- coming and going ------------------------------------------------------------------------

    def add_run(self, data: bytes) -> None:
        """Sorted entries, all of them behind those of the runs before."""
        if data:
            run = _Run(data)
            self._runs.append(run)
            self.count += run.length

    def add(self, due_ms: int, entry: bytes) -> None:
        late = self._late.get(due_ms)
        self.count += 1
        if late is None:
            self._late[due_ms] = bytearray(entry)
            dues = self._late_dues
            if not dues or due_ms > dues[-1]:
                dues.append(due_ms)
            else:
                insort(dues, due_ms)
        elif entry > late[-ENTRY_BYTES:]:
            late += entry
        else:
            at = _number_below(late, entry) * ENTRY_BYTES
            late[at:at] = entry

    def remove(self, due_ms: int, entry: bytes) -> bool:
        """Whether it was there."""
        was_there = self._remove_late(due_ms, entry) or self._remove_from_run(entry)
        self.count -= was_there
        return was_there

    def _remove_late(self, due_ms: int, entry: bytes) -> bool:
        late = self._late.get(due_ms)
        if late is None:
            return False
        at = _number_below(late, entry) * ENTRY_BYTES
        if late[at : at + ENTRY_BYTES] != entry:
            return False
        del late[at : at + ENTRY_BYTES]
        if not late:
            del self._late[due_ms]
            del self._late_dues[bisect_left(self._late_dues, due_ms)]
        return True

    def _remove_from_run(self, entry: bytes) -> bool:
        for run in self._runs:
            number = run.number_of(entry)
            if number < run.length:
                return run.entry(number) == entry and run.kill(number)
        return False

    def pass_to(self, due_ms: int, entry: bytes) -> None:
        """Drop everything at or below an entry."""
        while self._runs:
            run = self._runs[0]
            place = bisect_right(range(run.length), entry, lo=run.place, key=run.entry)
            self.count -= run.live_count(run.place, place)
            run.place = place
            if place < run.length:
                break
            self._runs.popleft()
        gone = bisect_left(self._late_dues, due_ms)
        for due in self._late_dues[:gone]:
            self.count -= len(self._late.pop(due)) // ENTRY_BYTES
        late = self._late.get(due_ms)
        if late is not None:
            number = _number_below(late, entry)
            end = number * ENTRY_BYTES
            if late[end : end + ENTRY_BYTES] == entry:
                number += 1
            self.count -= number
            del late[: number * ENTRY_BYTES]
            if not late:
                del self._late[due_ms]
                gone += 1
        del self._late_dues[:gone]

    # -- looking ---------------------------------------------------------------------------------

    def first(self) -> bytes | None:
        """The smallest entry."""
        while self._runs:
            run = self._runs[0]
            run.skip_dead()
            if run.place < run.length:
                break
            self._runs.popleft()
        late = self._late[self._late_dues[0]][:ENTRY_BYTES] if self._late_dues else None
        if not self._runs:
            return None if late is None else bytes(late)
        first = self._runs[0].entry(self._runs[0].place)
        return first if late is None or first < late else bytes(late)

    def between(self, from_ms: int, to_ms: int, limit: int) -> list[bytes]:
        """The smallest that are due from one time on and before another, in order."""
        low, high = first_of(from_ms), first_of(to_ms)
        found: list[bytes] = []
        for run in self._runs:
            start, end = run.number_of(low), run.number_of(high)
            found += run.live(start, end, limit - len(found))
            if len(found) >= limit or end < run.length:
                break
        late: list[bytes] = []
        for number in range(bisect_left(self._late_dues, from_ms), len(self._late_dues)):
            due_ms = self._late_dues[number]
            if due_ms >= to_ms or len(late) >= limit:
                break
            data = self._late[due_ms]
            end = min(len(data), (limit - len(late)) * ENTRY_BYTES)
            late += [bytes(data[at : at + ENTRY_BYTES]) for at in range(0, end, ENTRY_BYTES)]
        if not late:
            return found
        return sorted(found + late)[:limit] if found else late

    def count_between(self, from_ms: int, to_ms: int) -> int:
        """How many are due from one time on and before another."""
        low, high = first_of(from_ms), first_of(max(from_ms, to_ms))
        runs = sum(run.live_count(run.number_of(low), run.number_of(high)) for run in self._runs)
        start, end = bisect_left(self._late_dues, from_ms), bisect_left(self._late_dues, to_ms)
        dues = islice(self._late_dues, start, max(start, end))
        return runs + sum(len(self._late[due]) for due in dues) // ENTRY_BYTES

    def holds(self, due_ms: int, entry: bytes) -> bool:
        """Whether this very entry is there; no slower where many are due at the same time."""
        late = self._late.get(due_ms)
        if late is not None:
            at = _number_below(late, entry) * ENTRY_BYTES
            if late[at : at + ENTRY_BYTES] == entry:
                return True
        for run in self._runs:
            number = run.number_of(entry)
            if number < run.length:
                return run.entry(number) == entry and run.live_count(number, number + 1) == 1
        return False

    def find(self, due_ms: int, offset: int) -> bytes | None:
        """The entry with this due time and offset."""
        due, name = due_ms.to_bytes(8, "big"), offset.to_bytes(8, "big")
        late = self._late.get(due_ms, b"")
        for at in positions(late, due, name, 0, len(late)):
            return bytes(late[at : at + ENTRY_BYTES])
        for run in self._runs:
            start, end = run.number_of(first_of(due_ms)), run.number_of(first_of(due_ms + 1))
            for at in positions(run.data, due, name, start * ENTRY_BYTES, end * ENTRY_BYTES):
                if run.live_count(at // ENTRY_BYTES, at // ENTRY_BYTES + 1):
                    return run.data[at : at + ENTRY_BYTES]
        return None


def _number_below(late: bytearray, entry: bytes) -> int:
    numbers = range(len(late) // ENTRY_BYTES)
    return bisect_left(
        numbers, entry, key=lambda at: bytes(late[at * ENTRY_BYTES : (at + 1) * ENTRY_BYTES])
    )
