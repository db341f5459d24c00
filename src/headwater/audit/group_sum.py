"""What became of a topic's records in one group: its commits, joined with what lies where.

Commits are offsets; pieces, which are rows of the broker's tier, say how many records lie between
two of them. A record that was deleted before the group had committed past it is *missing*, also
when the group has gone on behind it since: when the log came to begin where is known, good to a
second, and of what was deleted in the same second as it was passed nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple

from headwater.audit.rows import Row, number_of, points_of

_POINT_MS: Final = 1_000


class Piece:
    """The records of one bucket in one stretch of a partition."""

    __slots__ = ("count", "first_offset", "last_offset", "source", "start_ms", "time_max")

    def __init__(self, row: Row) -> None:
        self.source: str = row["source"]
        self.start_ms: int = row["time_bucket_start"]
        self.time_max = number_of(row, "time_max")
        self.count = max(number_of(row, "count") - number_of(row, "aborted_count"), 0)
        self.first_offset = number_of(row, "first_offset")
        self.last_offset = number_of(row, "last_offset")

    def count_before(self, offset: int) -> int:
        """How many of its records lie in front of `offset`."""
        if offset > self.last_offset:
            return self.count
        if offset <= self.first_offset:
            return 0
        offsets = self.last_offset - self.first_offset + 1
        return self.count * (offset - self.first_offset) // offsets

    def count_between(self, first: int, end: int) -> int:
        """How many lie in [first, end)."""
        return max(self.count_before(end) - self.count_before(first), 0)

    def lose_from(self, offset: int) -> int:
        """What lies there and behind is lost; how many records that were."""
        lost = self.count - self.count_before(offset)
        self.count -= lost
        self.last_offset = min(self.last_offset, offset - 1)
        return lost


@dataclass(slots=True)
class GroupSum:
    """What became of the topic's records in one group."""

    group: str
    out_count: int = 0
    #: What was deleted before the group had committed past it.
    missing_count: int = 0
    #: What was to be read again because a commit went back.
    doubled_count: int = 0
    went_back_count: int = 0
    without_member_count: int = 0
    latency_ms_max: int | None = None
    #: By the start of the bucket.
    out_by_bucket: dict[int, int] = field(default_factory=dict)
    missing_by_bucket: dict[int, int] = field(default_factory=dict)


class StartPoint(NamedTuple):
    """From that time on at the latest, what lies in front of the offset was deleted."""

    time_ms: int
    offset: int


class PartitionFacts:
    """What the rows of the broker's tier tell of one partition."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._starts: dict[str, list[StartPoint]] = {}

    def add_starts(self, row: Row) -> None:
        points = [StartPoint(*point) for point in points_of(row, "log_starts", 2)]
        told = StartPoint(number_of(row, "time"), number_of(row, "log_start_offset"))
        self._starts.setdefault(row["source"], []).extend((*points, told))

    def lose_from(self, source: str, offset: int) -> Iterator[tuple[int, int]]:
        """What a log had there and behind is lost; yields buckets and how many records."""
        for piece in self.pieces:
            if piece.source == source:
                yield piece.start_ms, piece.lose_from(offset)

    @property
    def starts(self) -> list[StartPoint]:
        """In their order, each with the largest offset so far; of the newest topic of the name."""
        found: list[StartPoint] = []
        for point in sorted(max(self._starts.values(), key=max, default=[])):
            if not found or point.offset > found[-1].offset:
                found.append(point)
        return found


class _Commit(NamedTuple):
    """A commit, or the last of those that were made since `since_ms`."""

    since_ms: int
    time_ms: int
    offset: int


def add_commits(
    total: GroupSum,
    rows: Iterable[Row],
    facts: PartitionFacts,
    buckets: Iterable[int],
    log_start: int,
) -> None:
    """What the rows of a group tell of one partition, for records of the buckets that count."""
    # A row of a later stretch is a later row, and stretches of one source are all there.
    ordered = sorted(rows, key=itemgetter("source", "from_offset"))
    pieces = facts.pieces
    commits: list[_Commit] = []
    committed: int | None = None
    for row in ordered:
        first = number_of(row, "first_committed")
        steps = [(high, low) for high, low in points_of(row, "went_back", 2)]
        total.went_back_count += number_of(row, "went_back_count")
        total.without_member_count += number_of(row, "without_member_count")
        if committed is not None and first < committed:
            steps.append((committed, first))
            total.went_back_count += 1
        for high, low in steps:
            total.doubled_count += sum(piece.count_between(low, high) for piece in pieces)
        commits += _commits(row)
        committed = number_of(row, "committed")
    if committed is None:
        return
    reached = max((commit.offset for commit in commits), default=committed)
    missing = _missing(commits, facts.starts)
    if log_start > reached:
        missing.append((reached, log_start))
    wanted = frozenset(buckets)
    for piece in pieces:
        if piece.start_ms not in wanted:
            continue
        missed = sum(piece.count_between(*each) for each in missing)
        passed = sum(piece.count_between(first, min(end, reached)) for first, end in missing)
        total.missing_count += missed
        _add(total.missing_by_bucket, piece.start_ms, missed)
        out = piece.count_before(reached) - passed
        total.out_count += out
        _add(total.out_by_bucket, piece.start_ms, out)
        passed_ms = next(
            (each.time_ms for each in commits if each.offset > piece.last_offset), None
        )
        if passed_ms is not None:
            latency_ms = max(passed_ms - piece.time_max, 0)
            total.latency_ms_max = max(total.latency_ms_max or 0, latency_ms)


def _add(sums: dict[int, int], start_ms: int, count: int) -> None:
    sums[start_ms] = sums.get(start_ms, 0) + count


def _commits(row: Row) -> list[_Commit]:
    points = points_of(row, "points", 2)
    # Where each commit has its point, each is known exactly; else one stands for a step of time.
    is_exact = row.get("count") == len(points)
    step_ms = number_of(row, "points_ms") or _POINT_MS
    return [
        _Commit(time_ms if is_exact else time_ms // step_ms * step_ms, time_ms, offset)
        for time_ms, offset in points
    ]


def _missing(commits: Sequence[_Commit], starts: Sequence[StartPoint]) -> list[tuple[int, int]]:
    """The offsets that were deleted for sure when the group committed past them."""
    found: list[tuple[int, int]] = []
    if not commits or not starts:
        return found
    reached = commits[0].offset
    for commit in commits[1:]:
        if commit.offset <= reached:
            continue
        start = max((each.offset for each in starts if each.time_ms <= commit.since_ms), default=0)
        if start > reached:
            found.append((reached, min(start, commit.offset)))
        reached = commit.offset
    return found
