"""RecordAccumulator: where records gather, partition by partition, until the sender takes them.

Callers append in their own threads; the sender drains on its loop. What they share is guarded by
one lock, held for a moment at a time. A batch reserves its memory when it is opened, as much as a
full one may need, so that a record which finds room in an open batch needs no bookkeeping at all.

No clock and no waiting in here: whoever finds the memory used up is told so, and can have itself
called when some is free again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.producer.batches.audit_numbers import AuditNumbers
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.wire.records import HEADER_SIZE

#: Topic and partition, when it is opened, and what it takes of the memory.
MakeBatch: TypeAlias = Callable[[TopicPartition, float, int], ProduceBatch]
#: The same, with the section behind the partition.
MakeBatchOfSection: TypeAlias = Callable[[TopicPartition, RecordSection, float, int], ProduceBatch]


class RecordAccumulator:
    def __init__(
        self,
        *,
        batch_size_bytes: int,
        linger_s: float,
        buffer_bytes: int,
        delivery_timeout_s: float,
        numbers: AuditNumbers | None = None,
    ) -> None:
        self.lock = threading.Lock()
        self.batch_size_bytes = batch_size_bytes
        self.buffer_bytes = buffer_bytes
        self.available_bytes = buffer_bytes
        self._linger_s = linger_s
        self._delivery_timeout_s = delivery_timeout_s
        #: How batches are made, under the lock.
        self._make_batch: MakeBatch = ProduceBatch if numbers is None else numbers.make_batch
        self._make_batch_of_section: MakeBatchOfSection = (
            ProduceBatch.of_section if numbers is None else numbers.make_batch_of_section
        )
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        #: Queues in which something waits; a dict for its order.
        self._filled: dict[PartitionQueue, None] = {}
        #: Batches that are not done, the oldest first; one that was split stands for its parts.
        self._unfinished: dict[ProduceBatch, None] = {}
        #: Who waits for memory, first come first served, and for how much.
        self._memory_waiters: dict[Callable[[], None], int] = {}
        #: So much must be free before anybody is told: who then finds room for many records comes
        #: back less often, and threads spend their time on records and not on taking turns.
        self._memory_for_waiters = buffer_bytes // 256
        self._flush_count = 0

    def queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(topic_partition)
        if queue is None:
            with self.lock:
                queue = self._queues.setdefault(topic_partition, PartitionQueue(topic_partition))
        return queue

    # -- for callers -----------------------------------------------------------------------------

    def append(self, queue: PartitionQueue, record: SerializedRecord) -> DeliveryFuture | None:
        """Put a record into the open batch; None if it has no room there."""
        with self.lock:
            batch = queue.open
            if batch is None or not self._has_room(batch, record):
                return None
            return DeliveryFuture(batch, batch.add(record))

    def append_to_new(
        self, queue: PartitionQueue, record: SerializedRecord, now_s: float
    ) -> DeliveryFuture | None:
        """Put a record into a new batch; None if there is no memory for one.

        There is never a batch without records, which the sender might take.
        """
        with self.lock:
            batch = queue.open
            # Another thread may have opened one since.
            if batch is None or not self._has_room(batch, record):
                queue.open = None
                reserved_bytes = self._reserved_bytes(record.size_bytes)
                if reserved_bytes > self.available_bytes:
                    return None
                batch = self._make_batch(queue.topic_partition, now_s, reserved_bytes)
                queue.open = batch
                self._add(queue, batch)
            return DeliveryFuture(batch, batch.add(record))

    def add_section(
        self, queue: PartitionQueue, section: RecordSection, now_s: float
    ) -> ProduceBatch | None:
        """A whole batch of records that are encoded already; None if there is no memory for it."""
        with self.lock:
            reserved_bytes = min(HEADER_SIZE + len(section.data), self.buffer_bytes)
            if reserved_bytes > self.available_bytes:
                return None
            queue.open = None
            batch = self._make_batch_of_section(
                queue.topic_partition, section, now_s, reserved_bytes
            )
            self._add(queue, batch)
            return batch

    def batch_of_dropped(self, queue: PartitionQueue, record: SerializedRecord) -> ProduceBatch:
        """A batch of a record for which there is no memory, to be told what became of it."""
        with self.lock:
            batch = self._make_batch(queue.topic_partition, 0.0, 0)
            batch.add(record)
        return batch

    def when_memory(self, size_bytes: int, callback: Callable[[], None]) -> None:
        """Call it once when there is memory for a batch with a record of that size."""
        reserved_bytes = self._reserved_bytes(size_bytes)
        with self.lock:
            if self._memory_waiters or reserved_bytes > self.available_bytes:
                self._memory_waiters[callback] = reserved_bytes
                return
        callback()

    def forget_waiter(self, callback: Callable[[], None]) -> None:
        """Whoever waited for memory does so no more."""
        with self.lock:
            self._memory_waiters.pop(callback, None)
        # It may have been told, and then it is another's turn.
        self._tell_waiters()

    @property
    def waiter_count(self) -> int:
        return len(self._memory_waiters)

    def _reserved_bytes(self, size_bytes: int) -> int:
        """What a batch takes of the memory whose first record is so large."""
        return min(max(self.batch_size_bytes, HEADER_SIZE + size_bytes), self.buffer_bytes)

    def _has_room(self, batch: ProduceBatch, record: SerializedRecord) -> bool:
        return batch.size_bytes + record.size_bytes <= self.batch_size_bytes

    def _add(self, queue: PartitionQueue, batch: ProduceBatch) -> None:
        self.available_bytes -= batch.reserved_bytes
        batch.when_done(self._batch_ended)
        queue.waiting.append(batch)
        self._filled[queue] = None
        self._unfinished[batch] = None

    # -- flushing --------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether every record has been written or has failed."""
        return not self._unfinished

    def unfinished(self) -> list[ProduceBatch]:
        # One operation, without the lock: the garbage collector may ask while that is held.
        return list(self._unfinished)

    def begin_flush(self) -> None:
        """Let batches go without waiting for company, until `end_flush`."""
        with self.lock:
            self._flush_count += 1

    def end_flush(self) -> None:
        with self.lock:
            self._flush_count -= 1

    @property
    def is_urgent(self) -> bool:
        """Whether somebody waits for batches to go."""
        return self._flush_count > 0 or bool(self._memory_waiters)

    # -- for the sender --------------------------------------------------------------------------

    def filled(self) -> list[PartitionQueue]:
        """The queues in which something waits."""
        with self.lock:
            return list(self._filled)

    def due_s(self, queue: PartitionQueue, *, everything: bool) -> float | None:
        """When the first batch of a queue may go; None if none waits."""
        with self.lock:
            if not queue.waiting:
                return None
            return queue.due_s(self._linger_s, everything=everything)

    def take(self, queue: PartitionQueue) -> ProduceBatch:
        """Close the first batch of the queue and take it out, to be sent now."""
        with self.lock:
            batch = queue.take()
            if not queue.waiting:
                self._filled.pop(queue, None)
            return batch

    def put_back(self, batches: Iterable[ProduceBatch]) -> None:
        """Batches of one partition, none of which is on its way any more, are to be sent again."""
        with self.lock:
            for batch in batches:
                queue = self._queues[batch.topic_partition]
                queue.put_back(batch)
                self._filled[queue] = None

    def off_the_wire(self, batch: ProduceBatch) -> None:
        """Its attempt is over, one way or the other."""
        self._queues[batch.topic_partition].on_the_wire.remove(batch)

    def next_expiry_s(self) -> float | None:
        """When the oldest batch runs out of time."""
        with self.lock:
            oldest = next(iter(self._unfinished), None)
        return None if oldest is None else oldest.opened_s + self._delivery_timeout_s

    def take_expired(self, now_s: float) -> list[ProduceBatch]:
        """The batches whose time is over, also those on their way, taken out."""
        timeout_s = self._delivery_timeout_s
        return self._take_out(lambda batch, _: batch.opened_s + timeout_s <= now_s)

    def take_waiting(self) -> list[ProduceBatch]:
        """All that is not on its way, taken out."""
        return self._take_out(lambda _, is_on_the_wire: not is_on_the_wire)

    def take_all(self) -> list[ProduceBatch]:
        """Everything, taken out."""
        return self._take_out(lambda *_: True)

    def _take_out(self, is_wanted: Callable[[ProduceBatch, bool], bool]) -> list[ProduceBatch]:
        found: list[ProduceBatch] = []
        with self.lock:
            for queue in self._queues.values():
                wanted = [batch for batch in queue.on_the_wire if is_wanted(batch, True)]
                wanted += [batch for batch in queue.waiting if is_wanted(batch, False)]
                for batch in wanted:
                    queue.remove(batch)
                if not queue.waiting:
                    self._filled.pop(queue, None)
                found += wanted
        return found

    def _batch_ended(self, batch: ProduceBatch) -> None:
        with self.lock:
            del self._unfinished[batch]
            self.available_bytes += batch.reserved_bytes
            check(self.available_bytes <= self.buffer_bytes, "more memory was freed than taken")
        self._tell_waiters()

    def _tell_waiters(self) -> None:
        if not self._memory_waiters:
            return
        told: list[Callable[[], None]] = []
        with self.lock:
            free_bytes = self.available_bytes
            if free_bytes < self._memory_for_waiters and self._unfinished:
                return
            for callback, reserved_bytes in self._memory_waiters.items():
                free_bytes -= reserved_bytes
                if free_bytes < 0:
                    break
                told.append(callback)
            for callback in told:
                del self._memory_waiters[callback]
        for callback in told:
            callback()
