"""Which offsets of topics a table has taken in: ranges of them, and how many records they held.

A commit of archived records says for each partition: from this offset up to that one, all that
could be read is now in the table, so many records. Ranges that meet are joined, so that a partition
that was archived without a gap has one range however many commits there were. The count of records
is what the files must add up to for ever after, also when compaction has rewritten them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headwater.base.ids import TopicPartition
from headwater.pipeline.lake.errors import LakeOverlapError


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `start` up to, but without, `end`."""

    topic: str
    partition: int
    start: int
    end: int
    row_count: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __contains__(self, offset: int) -> bool:
        return self.start <= offset < self.end

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "start": self.start,
            "end": self.end,
            "row_count": self.row_count,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OffsetRange:
        return cls(
            str(value["topic"]),
            int(value["partition"]),
            int(value["start"]),
            int(value["end"]),
            int(value["row_count"]),
        )


#: For each partition its ranges, in order, that neither overlap nor meet.
Coverage: TypeAlias = dict[TopicPartition, tuple[OffsetRange, ...]]


def with_ranges(
    coverage: Mapping[TopicPartition, tuple[OffsetRange, ...]], added: Iterable[OffsetRange]
) -> Coverage:
    """The coverage with more ranges; raises `LakeOverlapError` if one is there already."""
    result = dict(coverage)
    for one in added:
        if one.start >= one.end:
            continue
        present = result.get(one.topic_partition, ())
        for other in present:
            if one.start < other.end and other.start < one.end:
                raise LakeOverlapError(
                    f"Offsets {max(one.start, other.start)} to {min(one.end, other.end) - 1} of "
                    f"{one.topic_partition} are in the table already: it has those from "
                    f"{other.start} to {other.end - 1}, and this batch brings {one.start} to "
                    f"{one.end - 1}. Was its checkpoint deleted, or the topic made anew?"
                )
        result[one.topic_partition] = _joined([*present, one])
    return result


def gaps(ranges: Iterable[OffsetRange]) -> list[tuple[int, int]]:
    """Start and end of what is missing between the ranges of a partition."""
    ordered = list(ranges)
    return [
        (before.end, after.start)
        for before, after in itertools.pairwise(ordered)
        if before.end < after.start
    ]


def _joined(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    result: list[OffsetRange] = []
    for one in sorted(ranges, key=lambda each: each.start):
        if result and result[-1].end == one.start:
            last = result.pop()
            one = OffsetRange(
                last.topic, last.partition, last.start, one.end, last.row_count + one.row_count
            )
        result.append(one)
    return tuple(result)
