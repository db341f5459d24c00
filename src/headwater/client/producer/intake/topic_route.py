"""Where the records of one topic can go: its partitions' queues, and the sticky one among them.

Records without a key stay with one partition until it has got a batch's worth of bytes, then
another is drawn: batches are as large as they can be, and over time all partitions get as much. The
draw prefers partitions for which fewer batches wait, so a slow broker gets less.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.partition_queue import PartitionQueue


class TopicRoute:
    """Made anew when the topic's partitions or their leaders change. Read without a lock."""

    __slots__ = (
        "_batch_size_bytes",
        "_bytes_here",
        "_candidates",
        "_generator",
        "_is_adaptive",
        "_last_batch",
        "available",
        "queues",
        "sticky",
        "topic",
    )

    def __init__(
        self,
        topic: TopicInfo,
        queues: Sequence[PartitionQueue],
        *,
        batch_size_bytes: int,
        is_adaptive: bool,
        generator: random.Random,
    ) -> None:
        self.topic = topic.name
        self.queues = queues
        with_leader = [each.partition for each in topic.partitions if each.has_leader]
        self.available = with_leader or [each.partition for each in topic.partitions]
        self._candidates = [queues[number] for number in self.available]
        self._batch_size_bytes = batch_size_bytes
        self._is_adaptive = is_adaptive
        self._generator = generator
        #: The queue for records without a key.
        self.sticky = self._draw()
        self._bytes_here = 0
        self._last_batch: ProduceBatch | None = None

    def is_like(self, other: TopicRoute) -> bool:
        """Whether it leads to the same places."""
        return self.queues == other.queues and self.available == other.available

    def sticky_for_new_batch(self) -> PartitionQueue:
        """The queue in which to open a batch for records without a key."""
        batch = self.sticky.open
        if batch is not None and batch.timestamps:
            # It has no room for the record at hand: that is a batch's worth.
            self._move_on()
        elif self._last_batch is not None:
            self._bytes_here += self._last_batch.size_bytes
            self._last_batch = None
            if self._bytes_here >= self._batch_size_bytes:
                self._move_on()
        return self.sticky

    def next_sticky(self) -> PartitionQueue:
        """The queue for a whole batch of records without a key; the next one goes elsewhere."""
        queue = self.sticky
        self._move_on()
        return queue

    def note_opened(self, batch: ProduceBatch | None) -> None:
        """A batch was opened for records without a key."""
        self._last_batch = batch

    def _move_on(self) -> None:
        self._bytes_here = 0
        self._last_batch = None
        self.sticky = self._draw()

    def _draw(self) -> PartitionQueue:
        candidates = self._candidates
        if len(candidates) == 1:
            return candidates[0]
        if not self._is_adaptive:
            return self._generator.choice(candidates)
        lengths = [len(queue.waiting) for queue in candidates]
        # The weight of a queue is how much shorter it is than one beyond the longest.
        longest = max(lengths) + 1
        left = self._generator.random() * (longest * len(lengths) - sum(lengths))
        for queue, length in zip(candidates, lengths, strict=True):
            left -= longest - length
            if left < 0:
                return queue
        return candidates[-1]
