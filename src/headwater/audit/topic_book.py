"""The book of one topic: rows of `__audit` joined, from what came in to what each group has read.

The broker's rows say how many records of which time lie between two offsets, the groups' rows up to
which offset a group was at which time. Joined, offsets become counts, and commits become latencies.
Within one row, where some offsets hold no record (markers, what was compacted), the counts of a
group that is in the middle of it are estimates; they are exact when the group is past the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from headwater.audit.rows import GROUP_TIER, Row

OPEN: Final = "open"
SETTLED: Final = "settled"
AMENDED: Final = "amended"

#: A bucket is settled no later than this behind its end, however late records came before.
_LATENESS_MS_MAX: Final = 600_000


@dataclass(slots=True)
class BucketSum:
    """What came with timestamps of one bucket of time."""

    start_ms: int
    end_ms: int
    count: int = 0
    bytes: int = 0
    batches: int = 0
    aborted_count: int = 0
    late_count: int = 0
    lateness_ms_max: int = 0
    #: When the last row of it was published.
    told_ms: int = 0
    state: str = OPEN

    @property
    def stored_count(self) -> int:
        """What readers of committed data are given."""
        return self.count - self.aborted_count


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


@dataclass(slots=True)
class TopicBook:
    """All of it, for a stretch of record time."""

    topic: str
    buckets: list[BucketSum]
    groups: list[GroupSum]
    #: Records without a timestamp, which belong to no bucket.
    count_without_time: int = 0
    duplicates_refused: int = 0
    gaps_refused: int = 0
    uncounted_offsets: int = 0
    has_append_time: bool = False

    @property
    def count(self) -> int:
        return sum(bucket.count for bucket in self.buckets)

    @property
    def stored_count(self) -> int:
        return sum(bucket.stored_count for bucket in self.buckets)

    @property
    def alarms(self) -> list[str]:
        """What somebody should look at, as sentences."""
        found = []
        for group in self.groups:
            if group.missing_count:
                found.append(
                    f"{group.missing_count} records were deleted before {group.group} had "
                    "committed past them."
                )
            if group.doubled_count:
                found.append(f"{group.group} went back by {group.doubled_count} records.")
        if self.gaps_refused:
            found.append(f"{self.gaps_refused} batches came with a gap in front, and were refused.")
        if self.uncounted_offsets:
            found.append(f"{self.uncounted_offsets} offsets were deleted before they were counted.")
        return found


class _Piece:
    """The records of one bucket in one stretch of a partition."""

    __slots__ = ("count", "first_offset", "last_offset", "row")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.count = _number(row, "count") - _number(row, "aborted_count")
        self.first_offset = _number(row, "first_offset")
        self.last_offset = _number(row, "last_offset")

    def count_before(self, offset: int) -> int:
        """How many of its records lie in front of `offset`."""
        if offset > self.last_offset:
            return self.count
        if offset <= self.first_offset:
            return 0
        offsets = self.last_offset - self.first_offset + 1
        return self.count * (offset - self.first_offset) // offsets


def make_book(
    topic: str,
    rows: Iterable[Row],
    *,
    from_ms: int,
    to_ms: int,
    now_ms: int,
    log_starts: Mapping[int, int] | None = None,
) -> TopicBook:
    """The book for records of [from_ms, to_ms); `log_starts` says where partitions begin now."""
    book = TopicBook(topic, [], [])
    buckets: dict[int, BucketSum] = {}
    pieces: dict[int, list[_Piece]] = {}
    commits: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        if row["topic"] != topic:
            continue
        if row["tier"] == GROUP_TIER:
            commits.setdefault(row["group"], {}).setdefault(row["partition"], []).append(row)
            continue
        _add_facts(book, row)
        start_ms = row.get("time_bucket_start")
        if not isinstance(start_ms, int):
            book.count_without_time += _number(row, "count")
            continue
        pieces.setdefault(row["partition"], []).append(_Piece(row))
        if from_ms <= start_ms < to_ms:
            _add_bucket(buckets, start_ms, row)
    book.buckets = [bucket for _, bucket in sorted(buckets.items())]
    _settle(book.buckets, now_ms)
    for group, by_partition in sorted(commits.items()):
        total = GroupSum(group)
        for partition, some in sorted(by_partition.items()):
            log_start = (log_starts or {}).get(partition, 0)
            _add_commits(total, some, pieces.get(partition, []), buckets, log_start)
        book.groups.append(total)
    return book


def _add_facts(book: TopicBook, row: Row) -> None:
    book.duplicates_refused += _number(row, "duplicates_refused")
    book.gaps_refused += _number(row, "gaps_refused")
    book.uncounted_offsets += _number(row, "uncounted_offsets")
    book.has_append_time |= row.get("timestamp_type") == "LogAppendTime"


def _add_bucket(buckets: dict[int, BucketSum], start_ms: int, row: Row) -> None:
    bucket = buckets.get(start_ms)
    if bucket is None:
        bucket = buckets[start_ms] = BucketSum(start_ms, _number(row, "time_bucket_end"))
    bucket.count += _number(row, "count")
    bucket.bytes += _number(row, "bytes")
    bucket.batches += _number(row, "batches")
    bucket.aborted_count += _number(row, "aborted_count")
    bucket.late_count += _number(row, "late_count")
    bucket.lateness_ms_max = max(bucket.lateness_ms_max, _number(row, "lateness_ms_max"))
    bucket.told_ms = max(bucket.told_ms, _number(row, "time"))


def _settle(buckets: list[BucketSum], now_ms: int) -> None:
    """Settled: older than the latest record that came, and a round of publishing more."""
    lateness_ms = max((bucket.lateness_ms_max for bucket in buckets), default=0)
    for bucket in buckets:
        wait_ms = min(lateness_ms, _LATENESS_MS_MAX) + 2 * (bucket.end_ms - bucket.start_ms)
        settled_ms = bucket.end_ms + wait_ms
        if now_ms >= settled_ms:
            bucket.state = AMENDED if bucket.told_ms > settled_ms else SETTLED


def _add_commits(
    total: GroupSum,
    rows: list[Row],
    pieces: list[_Piece],
    buckets: Mapping[int, BucketSum],
    log_start: int,
) -> None:
    # A row of a later stretch is a later row, and stretches of one source are all there.
    rows = sorted(rows, key=lambda row: (str(row["source"]), int(row["from_offset"])))
    points: list[tuple[int, int]] = []
    committed: int | None = None
    for row in rows:
        first = _number(row, "first_committed")
        steps = [(int(a), int(b)) for a, b in row.get("went_back") or ()]
        total.went_back_count += _number(row, "went_back_count")
        total.without_member_count += _number(row, "without_member_count")
        if committed is not None and first < committed:
            steps.append((committed, first))
            total.went_back_count += 1
        for high, low in steps:
            total.doubled_count += sum(
                piece.count_before(high) - piece.count_before(low) for piece in pieces
            )
        points += [(int(time_ms), int(offset)) for time_ms, offset in row.get("points") or ()]
        committed = _number(row, "committed")
    if committed is None:
        return
    reached = max((offset for _, offset in points), default=committed)
    for piece in pieces:
        start_ms = piece.row["time_bucket_start"]
        if start_ms not in buckets:
            continue
        out = piece.count_before(reached)
        total.out_count += out
        total.out_by_bucket[start_ms] = total.out_by_bucket.get(start_ms, 0) + out
        if log_start > reached:
            total.missing_count += piece.count_before(log_start) - out
        passed_ms = next((ms for ms, offset in points if offset > piece.last_offset), None)
        if passed_ms is not None:
            latency_ms = max(passed_ms - _number(piece.row, "time_max"), 0)
            total.latency_ms_max = max(total.latency_ms_max or 0, latency_ms)


def _number(row: Row, name: str) -> int:
    """A number of a row; 0 for one that is not there, or is none."""
    value = row.get(name)
    return value if type(value) is int else 0
