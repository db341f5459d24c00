"""What one level holds in memory until it is due, in the order in which it is to be sent.

All records of a level wait equally long, so those of a partition are due in the order of their
offsets; only partitions interleave, and a heap puts them into one order: (due, partition, offset).
Records of one partition never overtake each other, whatever their timestamps say: one is due no
earlier than the one before it. So what is done of a partition is all up to some offset, which is
what a group can commit.

A partition that has many waiting is crowded, and the caller stops to fetch it; it is roomy again
when half is gone. How many bytes a level may hold is shared evenly by its partitions, so that none
can keep another from being read in time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord


class Waiting(NamedTuple):
    """A record in its place in the order. No two have the same partition and offset."""

    due_ms: int
    partition: int
    offset: int
    size_bytes: int
    record: ConsumerRecord


@dataclass(slots=True)
class _Share:
    """What a partition has waiting."""

    count: int = 0
    size_bytes: int = 0
    last_due_ms: int = 0
    last_offset: int = -1
    is_paused: bool = False


@dataclass(slots=True)
class DelayQueue:
    """The records of one level topic; told the time, like all that is pure."""

    delay_ms: int
    count_max_per_partition: int
    bytes_max: int
    _heap: list[Waiting] = field(default_factory=list)
    _shares: dict[int, _Share] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(share.count for share in self._shares.values())

    @property
    def partition_count(self) -> int:
        return len(self._shares)

    @property
    def next_due_ms(self) -> int | None:
        return self._heap[0].due_ms if self._heap else None

    def assign(self, partitions: Iterable[int]) -> None:
        """These are read from now on."""
        for partition in partitions:
            self._shares[partition] = _Share()

    def drop(self, partitions: Collection[int]) -> None:
        """Others read these now, and will send what waits."""
        for partition in partitions:
            self._shares.pop(partition, None)
        self._remove(lambda waiting: waiting.partition in partitions)

    def forget_done(self, next_offsets: Mapping[int, int]) -> None:
        """Everything in front of these offsets turned out to be sent already."""
        self._remove(lambda waiting: waiting.offset < next_offsets.get(waiting.partition, 0))

    def add(self, record: ConsumerRecord, size_bytes: int, now_ms: int) -> None:
        """A record that was fetched. One of a partition that is not read here is left out."""
        share = self._shares.get(record.partition)
        if share is None:
            return
        if record.offset <= share.last_offset:
            # The partition was truncated: what was fetched from here on is not there any more.
            self._remove(
                lambda waiting: (
                    waiting.partition == record.partition and waiting.offset >= record.offset
                )
            )
        due_ms = max(due_at(record.timestamp, self.delay_ms, now_ms), share.last_due_ms)
        share.last_due_ms, share.last_offset = due_ms, record.offset
        share.count += 1
        share.size_bytes += size_bytes
        heapq.heappush(
            self._heap, Waiting(due_ms, record.partition, record.offset, size_bytes, record)
        )

    def take_due(self, now_ms: int, count_max: int, bytes_max: int) -> list[Waiting]:
        """What is to be sent now, in order: one at least if any is due. It counts until `done`."""
        taken: list[Waiting] = []
        taken_bytes = 0
        while self._heap and self._heap[0].due_ms <= now_ms and len(taken) < count_max:
            taken_bytes += self._heap[0].size_bytes
            if taken and taken_bytes > bytes_max:
                break
            taken.append(heapq.heappop(self._heap))
        return taken

    def done(self, taken: Iterable[Waiting]) -> None:
        """These have been sent."""
        for waiting in taken:
            self._leave(waiting)

    def put_back(self, taken: Iterable[Waiting]) -> None:
        """These could not be sent, and are still due."""
        for waiting in taken:
            if waiting.partition in self._shares:
                heapq.heappush(self._heap, waiting)

    def to_pause(self) -> set[int]:
        """Partitions that have become crowded since this was asked last."""
        bytes_max = self._bytes_max_per_partition
        crowded = {
            partition
            for partition, share in self._shares.items()
            if not share.is_paused
            and (share.count >= self.count_max_per_partition or share.size_bytes >= bytes_max)
        }
        for partition in crowded:
            self._shares[partition].is_paused = True
        return crowded

    def to_resume(self) -> set[int]:
        """Paused partitions of which half, or more, is gone since."""
        bytes_max = self._bytes_max_per_partition
        roomy = {
            partition
            for partition, share in self._shares.items()
            if share.is_paused
            and share.count * 2 <= self.count_max_per_partition
            and share.size_bytes * 2 <= bytes_max
        }
        for partition in roomy:
            self._shares[partition].is_paused = False
        return roomy

    @property
    def _bytes_max_per_partition(self) -> int:
        return max(1, self.bytes_max // max(1, len(self._shares)))

    def _leave(self, waiting: Waiting) -> None:
        share = self._shares.get(waiting.partition)
        if share is not None:
            share.count -= 1
            share.size_bytes -= waiting.size_bytes

    def _remove(self, is_gone: Callable[[Waiting], bool]) -> None:
        kept = []
        for waiting in self._heap:
            if is_gone(waiting):
                self._leave(waiting)
            else:
                kept.append(waiting)
        heapq.heapify(kept)
        self._heap = kept


def due_at(timestamp_ms: int, delay_ms: int, now_ms: int) -> int:
    """When a record of a level is due that was found at `now_ms`.

    A sender whose clock is fast, or who gives no time, cannot have it wait for longer than from
    now on.
    """
    sent_ms = now_ms if timestamp_ms < 0 else min(timestamp_ms, now_ms)
    return sent_ms + delay_ms


def numbers(partitions: Iterable[TopicPartition]) -> set[int]:
    """Partitions of the one topic that a level has, by number."""
    return {partition.partition for partition in partitions}
