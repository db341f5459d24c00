"""What a pool of workers has under way, partition by partition: windows, pauses and commits.

Each assigned partition has a window of records that were handed out (`tracker`). One that is
full is to be paused until half of it is free again. Nothing in here knows threads or the consumer:
the pool holds a lock, and does what it is told here.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.lanes import Task
from headwater.client.consumer.workers.tracker import OffsetTracker


class _Window:
    """One partition's, as long as it is assigned."""

    __slots__ = ("committed", "ending", "is_paused", "tracker")

    def __init__(self) -> None:
        self.tracker = OffsetTracker()
        #: Set when its records are not waited for any more.
        self.ending = threading.Event()
        self.is_paused = False
        self.committed: OffsetAndMetadata | None = None


class WorkWindows:
    def __init__(self, max_in_flight: int) -> None:
        #: A window of this size is full. The poll that fills it may bring as much again.
        self.full_size = max(1, max_in_flight // 2)
        self._windows: dict[TopicPartition, _Window] = {}

    def known(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of which anything was ever begun."""
        return [partition for partition in partitions if partition in self._windows]

    def is_sought_back(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Whether this record, or a later one, was handed out before."""
        window = self._windows.get(topic_partition)
        return window is not None and offset < (window.tracker.next_offset or 0)

    def begin(self, topic_partition: TopicPartition, record: ConsumerRecord) -> Task:
        """The record is handed out."""
        window = self._windows.get(topic_partition)
        if window is None:
            window = self._windows[topic_partition] = _Window()
        window.tracker.begin(record.offset, record.leader_epoch)
        return Task(record, topic_partition, window.tracker, window.ending)

    def take_full(self) -> list[TopicPartition]:
        """The partitions to be paused now."""
        full = [
            topic_partition
            for topic_partition, window in self._windows.items()
            if not window.is_paused and window.tracker.window_size >= self.full_size
        ]
        for topic_partition in full:
            self._windows[topic_partition].is_paused = True
        return full

    def can_resume(self, topic_partition: TopicPartition) -> bool:
        """Whether it is paused, and has room again."""
        window = self._windows.get(topic_partition)
        return (
            window is not None
            and window.is_paused
            and window.tracker.window_size <= self.full_size // 2
        )

    def take_resumable(self) -> list[TopicPartition]:
        """The partitions to be resumed now."""
        roomy = list(filter(self.can_resume, self._windows))
        for topic_partition in roomy:
            self._windows[topic_partition].is_paused = False
        return roomy

    def committable(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is done and not committed, of these partitions or of all."""
        return {
            topic_partition: offset
            for topic_partition, window in self._windows.items()
            if partitions is None or topic_partition in partitions
            if (offset := window.tracker.committable) is not None and offset != window.committed
        }

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for topic_partition, offset in offsets.items():
            if topic_partition in self._windows:
                self._windows[topic_partition].committed = offset

    def end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Let nobody wait before trying again with a record of these partitions, or of all."""
        for topic_partition in self._windows if partitions is None else partitions:
            self._windows[topic_partition].ending.set()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They are not ours any more; what is still being handled of them counts for nothing."""
        for topic_partition in partitions:
            self._windows.pop(topic_partition).ending.set()
