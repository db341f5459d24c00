"""What groups committed in a stretch of a partition of `__consumer_offsets`.

The log of commits is the truth, so nothing is done when an offset is committed. Of each group and
partition a few points of time and offset are kept, and each commit that went back. A commit that is
part of a transaction counts where it stands in the log, if the transaction was committed.

How far a group was before the stretch, the row of the stretch before tells: a reader looks there
whether the first commit went back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from headwater.audit.rows import GROUP_TIER, VERSION, Row
from headwater.base.ids import TopicPartition
from headwater.coordinator.group.offsets.record import (
    OFFSET_KEY_VERSIONS,
    read_offset_key,
    read_offset_value,
)
from headwater.coordinator.stored_record import read_version
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.wire.codec import MalformedMessageError
from headwater.wire.records import BatchHeader, decode_batch

#: How many commits came from nobody who is a member, by group and partition.
OutsideCommits: TypeAlias = Mapping[tuple[str, TopicPartition], int]

#: So many points of a group and partition are kept, one a second at most; with more, one in two
#: seconds, or four.
_POINTS_MAX: Final = 64
POINTS_STEP_MS: Final = 1_000
#: So many commits that went back are told one by one.
_BACK_MAX: Final = 100
#: So many groups and partitions are kept before they must be published.
_COMMITTED_MAX: Final = 10_000


class CommitBatch(NamedTuple):
    """A batch of the log of commits."""

    header: BatchHeader
    data: memoryview


class _Commits:
    """One group's commits for one partition."""

    __slots__ = (
        "back",
        "back_count",
        "count",
        "first",
        "last",
        "last_ms",
        "outside",
        "points",
        "points_ms",
    )

    def __init__(self, offset: int, commit_ms: int) -> None:
        self.first = self.last = offset
        self.last_ms = commit_ms
        self.count = 0
        self.points: list[tuple[int, int]] = []
        #: How much time a point may stand for.
        self.points_ms = POINTS_STEP_MS
        self.back: list[tuple[int, int]] = []
        self.back_count = 0
        self.outside = 0

    def add(self, offset: int, commit_ms: int) -> None:
        self.count += 1
        if offset < self.last:
            self.back_count += 1
            if len(self.back) < _BACK_MAX:
                self.back.append((self.last, offset))
        self._add_point(commit_ms, offset)
        if len(self.points) > _POINTS_MAX:
            self._thin_points()
        self.last, self.last_ms = offset, commit_ms

    def _thin_points(self) -> None:
        points, self.points = self.points, []
        self.points_ms *= 2
        for time_ms, offset in points:
            self._add_point(time_ms, offset)
        if len(self.points) > _POINTS_MAX:  # Commits went back and forth.
            del self.points[0:-1:2]

    def _add_point(self, time_ms: int, offset: int) -> None:
        """Of commits that only go forwards within one step of time, the last one is kept."""
        points, step_ms = self.points, self.points_ms
        if points and points[-1][0] // step_ms == time_ms // step_ms and points[-1][1] <= offset:
            points.pop()
        points.append((time_ms, offset))


class CommitCounts:
    """From one offset of the log of commits on, as far as batches were added."""

    def __init__(self, from_offset: int, bucket_ms: int) -> None:
        self.from_offset = self.to_offset = from_offset
        self._bucket_ms = bucket_ms
        self._commits: dict[tuple[str, str, int], _Commits] = {}

    @property
    def is_full(self) -> bool:
        return len(self._commits) >= _COMMITTED_MAX

    @property
    def is_empty(self) -> bool:
        return not self._commits

    def skip_to(self, offset: int) -> None:
        """What lies in front of `offset` is gone: compacted away, and so superseded."""
        self.to_offset = offset

    def add(self, batches: Iterable[CommitBatch], aborted: Iterable[AbortedTransaction]) -> None:
        """Batches that follow what was added before; one that cannot be read is passed over."""
        given_up = [(each.producer_id, each.first_offset, each.last_offset) for each in aborted]
        for header, data in batches:
            self.to_offset = header.next_offset
            if header.is_control or (
                header.is_transactional
                and any(
                    producer_id == header.producer_id and first <= header.base_offset <= last
                    for producer_id, first, last in given_up
                )
            ):
                continue
            for record in decode_batch(data):
                if record.key is not None and record.value is not None:
                    self._add(bytes(record.key), bytes(record.value))

    def _add(self, key: bytes, value: bytes) -> None:
        try:
            if read_version(key) not in OFFSET_KEY_VERSIONS:
                return
            named, committed = read_offset_key(key), read_offset_value(value)
        except MalformedMessageError:
            return
        name = (named.group, named.topic, named.partition)
        commits = self._commits.get(name)
        if commits is None:
            commits = _Commits(committed.offset, committed.commit_timestamp)
            self._commits[name] = commits
        commits.add(committed.offset, committed.commit_timestamp)

    def note_outside(self, outside: OutsideCommits) -> None:
        """How many of the commits came from outside of a group, as far as it is known."""
        for (group, (topic, partition)), count in outside.items():
            commits = self._commits.get((group, topic, partition))
            if commits is not None:
                commits.outside += count

    def rows(self, names: Row) -> list[Row]:
        """A row a group and partition."""
        stretch = {
            "version": VERSION,
            "tier": GROUP_TIER,
            **names,
            "from_offset": self.from_offset,
            "to_offset": self.to_offset,
        }
        rows = []
        for (group, topic, partition), commits in sorted(self._commits.items()):
            bucket = commits.last_ms // self._bucket_ms * self._bucket_ms
            rows.append(
                {
                    **stretch,
                    "group": group,
                    "topic": topic,
                    "partition": partition,
                    "time_bucket_start": bucket,
                    "time_bucket_end": bucket + self._bucket_ms,
                    "count": commits.count,
                    "first_committed": commits.first,
                    "committed": commits.last,
                    "commit_time": commits.last_ms,
                    "points": [list(point) for point in commits.points],
                    "points_ms": commits.points_ms,
                    "went_back_count": commits.back_count,
                    "went_back": [list(step) for step in commits.back],
                    "without_member_count": commits.outside,
                }
            )
        return rows
