"""Ranges of offsets, which tasks read, and how they are cut into more of them.

A range is of one partition and ends before `end`. Without options each partition is one task, as in
Spark's own connector; `minPartitions` and `maxRecordsPerPartition` cut ranges into pieces of equal
length, the longer a range the more of them. Offsets are counted, not records: which of them hold
records only a reader finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.shares import proportional_shares


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} from {self.start} to {self.end}"

    def cut(self, count: int) -> list[OffsetRange]:
        """So many pieces, whose lengths differ by one at most."""
        bounds = [self.start + self.size * number // count for number in range(count + 1)]
        return [
            OffsetRange(self.topic, self.partition, start, end) for start, end in pairwise(bounds)
        ]


def ranges_between(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """What lies between two offsets of the same partitions, in order, without empty ranges."""
    return [
        OffsetRange(*topic_partition, starts[topic_partition], end)
        for topic_partition, end in sorted(ends.items())
        if topic_partition in starts and starts[topic_partition] < end
    ]


def split_ranges(
    ranges: Iterable[OffsetRange], *, task_count_min: int | None, task_offsets_max: int | None
) -> list[OffsetRange]:
    """The ranges of tasks: at least so many, none longer than that, if the offsets suffice."""
    left = [each for each in ranges if each.size > 0]
    counts = {
        each: 1 if task_offsets_max is None else -(-each.size // task_offsets_max) for each in left
    }
    if left and task_count_min is not None and sum(counts.values()) < task_count_min:
        shares = proportional_shares({each: each.size for each in left}, task_count_min)
        counts = {each: max(count, shares[each]) for each, count in counts.items()}
    return [piece for each in left for piece in each.cut(counts[each])]
