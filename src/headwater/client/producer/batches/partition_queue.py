"""One partition's batches: those that wait, in order, and those on their way.

The last one that waits may be open, which means that records are still added to it. A batch that
must be sent again goes back among those that wait, before all that were never sent and in the order
in which they first left.
"""

from __future__ import annotations

from collections import deque

from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.batch import ProduceBatch


class PartitionQueue:
    """Changed only under the accumulator's lock; `on_the_wire` belongs to the sender alone."""

    __slots__ = ("_next_order", "on_the_wire", "open", "topic_partition", "waiting")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.waiting: deque[ProduceBatch] = deque()
        self.open: ProduceBatch | None = None
        self.on_the_wire: list[ProduceBatch] = []
        self._next_order = 0

    def due_s(self, linger_s: float, *, everything: bool) -> float:
        """When the first one that waits may go, which there must be."""
        first = self.waiting[0]
        if first is self.open and not everything:
            return first.opened_s + linger_s
        return first.not_before_s

    def take(self) -> ProduceBatch:
        """The first one that waits is on its way now."""
        batch = self.waiting.popleft()
        if batch is self.open:
            self.open = None
        if not batch.order:
            batch.order = (self._next_order,)
            self._next_order += 1
        batch.attempt_count += 1
        self.on_the_wire.append(batch)
        return batch

    def put_back(self, batch: ProduceBatch) -> None:
        """One that was sent before waits again, at the place that its order gives it."""
        place = 0
        for other in self.waiting:
            if not other.order or other.order > batch.order:
                break
            place += 1
        self.waiting.insert(place, batch)

    def remove(self, batch: ProduceBatch) -> None:
        """It waits no more, nor is it on its way."""
        if batch is self.open:
            self.open = None
        if batch in self.on_the_wire:
            self.on_the_wire.remove(batch)
        else:
            self.waiting.remove(batch)
