"""Tells exactly which ids are missing and which came twice, in bounded memory, without reading.

    checker = IdChecker()
    for record in records:
        if (audit_id := audit_id_of(record.headers)) is not None:
            checker.feed(audit_id)
    checker.missing(), checker.doubled()

The numbers of a stream leave nothing out, so what is missing between two of them was sent and is
not here. What was sent behind the last one nobody can see. In front of the first, somebody who has
read from the very beginning knows that the numbers begin at 0.

Who looks at a stretch of time reads a little more on both sides. Ids of before `from_ms` are there
to tell what is missing behind them, and are not told about themselves. What is missing in front of
an id of after `settled_ms` may still come, and is told as open.

Where the memory is used up, streams that would need more of it become incomplete: of them nothing
is said to be missing, and it is counted what was not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headwater.base.audit_id import AuditId, AuditStream
from headwater.base.durations import LONG_MAX
from headwater.delivery.audit.id_runs import IdRuns, Run

STREAMS_MAX: Final = 100_000
#: 16 bytes each.
RUNS_MAX: Final = 2_000_000


class IdRange(NamedTuple):
    """Ids of one stream from `first` to `last`, both among them."""

    stream: AuditStream
    first: int
    last: int
    #: Whether they may still come.
    is_open: bool = False

    @property
    def id_count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        end = "" if self.first == self.last else f"-{self.last}"
        return f"{self.stream}#{self.first}{end}"


class _Stream:
    __slots__ = ("doubles", "floor", "is_incomplete", "seen", "settled")

    def __init__(self) -> None:
        self.seen = IdRuns()
        self.doubles = IdRuns()
        #: The lowest number that is not too early to be told about.
        self.floor = LONG_MAX
        #: The highest number of which it is known that those in front of it should be there.
        self.settled = -1
        self.is_incomplete = False


class IdChecker:
    """The owner is who reads. Feed it in any order; in that of sending it is fastest."""

    def __init__(
        self,
        *,
        from_ms: int = 0,
        settled_ms: int = LONG_MAX,
        streams_max: int = STREAMS_MAX,
        runs_max: int = RUNS_MAX,
    ) -> None:
        self._from_ms = from_ms
        self._settled_ms = settled_ms
        self._streams_max = streams_max
        self._runs_left = runs_max
        self._streams: dict[AuditStream, _Stream] = {}
        #: All that were fed, again and again those that came again.
        self.fed_count = 0
        #: How often an id came that had come before.
        self.again_count = 0
        #: What there was no memory for.
        self.unchecked_count = 0

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def is_complete(self) -> bool:
        """Whether there was memory for all of it."""
        return self.unchecked_count == 0

    def feed(self, audit_id: AuditId) -> bool:
        """Note an id; whether it comes for the first time, or that is not known."""
        process, partition, number, time_ms = audit_id
        self.fed_count += 1
        key = AuditStream(process, partition)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= self._streams_max:
                self.unchecked_count += 1
                return True
            stream = self._streams[key] = _Stream()
        if time_ms >= self._from_ms and number < stream.floor:
            stream.floor = number
        if time_ms <= self._settled_ms and number > stream.settled:
            stream.settled = number
        seen = stream.seen
        if seen.follows_last(number):
            return True
        if number in seen:
            self.again_count += 1
            if number not in stream.doubles:
                self._add(stream, stream.doubles, number)
            return False
        self._add(stream, seen, number)
        return True

    def _add(self, stream: _Stream, runs: IdRuns, number: int) -> None:
        if runs.needs_run(number) and not self._runs_left:
            self.unchecked_count += 1
            stream.is_incomplete = True
            return
        before = len(runs)
        runs.add(number)
        self._runs_left += before - len(runs)

    # -- what was found --------------------------------------------------------------------------

    @property
    def id_count(self) -> int:
        """How many different ids came."""
        return sum(stream.seen.number_count for stream in self._streams.values())

    def missing(self, *, begins_at_zero: bool = False) -> Iterator[IdRange]:
        """What was sent and did not come."""
        for key, stream in sorted(self._streams.items()):
            if stream.is_incomplete or stream.floor == LONG_MAX:
                continue
            gaps = list(stream.seen.gaps())
            first = next(iter(stream.seen)).first
            if begins_at_zero and first > 0:
                gaps.insert(0, Run(0, first - 1))
            for gap in gaps:
                if gap.last + 1 >= stream.floor:
                    yield IdRange(key, *gap, gap.last >= stream.settled)

    def doubled(self) -> Iterator[IdRange]:
        """What came more than once."""
        for key, stream in sorted(self._streams.items()):
            for first, last in stream.doubles:
                if last >= stream.floor:
                    yield IdRange(key, max(first, stream.floor), last)

    def parted(self, ranges: Iterable[IdRange]) -> tuple[list[IdRange], list[IdRange]]:
        """What of these ids came here, and what did not."""
        came: list[IdRange] = []
        absent: list[IdRange] = []
        for each in ranges:
            stream = self._streams.get(each.stream, _Stream())
            wanted = IdRuns.of([Run(each.first, each.last)])
            lacking = IdRuns.of(wanted.without(stream.seen))
            absent += [each._replace(first=run.first, last=run.last) for run in lacking]
            came += [
                each._replace(first=run.first, last=run.last) for run in wanted.without(lacking)
            ]
        return came, absent

    def not_in(self, other: IdChecker) -> Iterator[IdRange]:
        """What came here and not there; streams that are incomplete there are left out."""
        nothing = _Stream()
        for key, stream in sorted(self._streams.items()):
            there = other._streams.get(key, nothing)
            if there.is_incomplete or (there is nothing and not other.is_complete):
                continue
            for first, last in stream.seen.without(there.seen):
                first = max(first, stream.floor)
                settled = min(last, stream.settled)
                if first <= settled:
                    yield IdRange(key, first, settled)
                if max(first, settled + 1) <= last:
                    yield IdRange(key, max(first, settled + 1), last, True)
