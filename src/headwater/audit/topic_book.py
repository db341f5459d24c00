"""The book of one topic: rows of `__audit` joined, from what came in to what each group has read.

The broker's rows say how many records of which time lie between two offsets, the groups' rows up to
which offset a group was at which time. Joined, offsets become counts, and commits become latencies.
Within one row, where some offsets hold no record (markers, what was compacted), the counts of a
group that is in the middle of it are estimates; they are exact when the group is past the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headwater.audit.group_sum import GroupSum, PartitionFacts, Piece, add_commits
from headwater.audit.rows import GROUP_TIER, Row, encode_row, is_apart, number_of

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
    #: Stored and counted, and gone without having been deleted.
    lost_count: int = 0
    late_count: int = 0
    lateness_ms_max: int = 0
    #: When the last row of it was published.
    told_ms: int = 0
    state: str = OPEN

    @property
    def stored_count(self) -> int:
        """What readers of committed data are given."""
        return max(self.count - self.aborted_count - self.lost_count, 0)


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
    def aborted_count(self) -> int:
        return sum(bucket.aborted_count for bucket in self.buckets)

    @property
    def lost_count(self) -> int:
        return sum(bucket.lost_count for bucket in self.buckets)

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
        if self.lost_count:
            found.append(
                f"{self.lost_count} records that were stored are lost: an unclean election or a "
                "lost disk took them."
            )
        if self.gaps_refused:
            found.append(f"{self.gaps_refused} batches came with a gap in front, and were refused.")
        if self.uncounted_offsets:
            found.append(f"{self.uncounted_offsets} offsets were deleted before they were counted.")
        return found


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
    facts: dict[int, PartitionFacts] = {}
    commits: dict[str, dict[int, list[Row]]] = {}
    apart: set[bytes] = set()
    latenesses: list[tuple[int, int]] = []
    for row in rows:
        if row["topic"] != topic:
            continue
        if row["tier"] == GROUP_TIER:
            commits.setdefault(row["group"], {}).setdefault(row["partition"], []).append(row)
            continue
        partition = facts.setdefault(row["partition"], PartitionFacts())
        if is_apart(row):
            # Of those that nobody answered there may be more than one.
            if (name := _name(row)) in apart:
                continue
            apart.add(name)
            if row["to_offset"] < row["from_offset"]:
                for lost_ms, lost in partition.lose_from(row["source"], row["to_offset"]):
                    if lost_ms in buckets:
                        buckets[lost_ms].lost_count += lost
        _add_facts(book, row)
        partition.add_starts(row)
        start_ms = row.get("time_bucket_start")
        if not isinstance(start_ms, int):
            book.count_without_time += number_of(row, "count")
            continue
        partition.pieces.append(Piece(row))
        if from_ms <= start_ms < to_ms:
            _add_bucket(buckets, start_ms, row)
            latenesses.append((number_of(row, "time"), number_of(row, "lateness_ms_max")))
    book.buckets = [bucket for _, bucket in sorted(buckets.items())]
    _settle(book.buckets, latenesses, now_ms)
    for group, by_partition in sorted(commits.items()):
        total = GroupSum(group)
        for number, some in sorted(by_partition.items()):
            log_start = (log_starts or {}).get(number, 0)
            add_commits(total, some, facts.get(number, PartitionFacts()), buckets, log_start)
        book.groups.append(total)
    return book


def _add_facts(book: TopicBook, row: Row) -> None:
    book.duplicates_refused += number_of(row, "duplicates_refused")
    book.gaps_refused += number_of(row, "gaps_refused")
    book.uncounted_offsets += number_of(row, "uncounted_offsets")
    book.has_append_time |= row.get("timestamp_type") == "LogAppendTime"


def _add_bucket(buckets: dict[int, BucketSum], start_ms: int, row: Row) -> None:
    bucket = buckets.get(start_ms)
    if bucket is None:
        bucket = buckets[start_ms] = BucketSum(start_ms, number_of(row, "time_bucket_end"))
    bucket.count += number_of(row, "count")
    bucket.bytes += number_of(row, "bytes")
    bucket.batches += number_of(row, "batches")
    bucket.aborted_count += number_of(row, "aborted_count")
    bucket.late_count += number_of(row, "late_count")
    bucket.lateness_ms_max = max(bucket.lateness_ms_max, number_of(row, "lateness_ms_max"))
    bucket.told_ms = max(bucket.told_ms, number_of(row, "time"))


def _name(row: Row) -> bytes:
    return encode_row({"time_bucket_start": None, "leader_epoch": None, "time": None, **row}).key


def _settle(
    buckets: Iterable[BucketSum], latenesses: Iterable[tuple[int, int]], now_ms: int
) -> None:
    """Settled: older than the latest record that had come by then, and a round of publishing more.

    How late records come is learned as they come. What makes a settled bucket known to be early is
    its own amendment, and does not open it again.
    """
    rises: list[tuple[int, int]] = []
    for told_ms, lateness_ms in sorted(latenesses):
        if lateness_ms > (rises[-1][1] if rises else 0):
            rises.append((told_ms, min(lateness_ms, _LATENESS_MS_MAX)))
    for bucket in buckets:
        earliest_ms = bucket.end_ms + 2 * (bucket.end_ms - bucket.start_ms)
        wait_ms = 0
        for told_ms, lateness_ms in rises:
            if earliest_ms + wait_ms <= told_ms:
                break
            wait_ms = lateness_ms
        settled_ms = earliest_ms + wait_ms
        if now_ms >= settled_ms:
            bucket.state = AMENDED if bucket.told_ms > settled_ms else SETTLED
