"""What has been fetched and was not handed out yet, by partition.

The loop adds what comes; the polling thread takes from one partition until its fetch is used up,
and goes on with the next, so that all have their turn. The two meet under one short lock: decoding
happens outside of it. A partition stays in here until the last record of its fetch has been handed
out and its position moved, so who finds nothing here may trust the position.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.columns.decoding.fetched_together import FetchedTogether
from headwater.client.consumer.deserializers import Deserializers
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.polling.record_reader import RecordReader
from headwater.client.fetch.corrupt_batches import CorruptBatches
from headwater.client.fetch.fetched_partition import FetchedPartition

#: No more is fetched of a partition that has something waiting, once so much is waiting.
AHEAD_BYTES: Final = 8 << 20


class _Queue:
    """Of one partition: what is being handed out, and what comes after it."""

    __slots__ = ("reader", "state", "waiting")

    def __init__(self, state: PartitionState) -> None:
        self.state = state
        self.reader: RecordReader | None = None
        self.waiting: deque[tuple[FetchedPartition, FetchedTogether]] = deque()


class FetchBuffer:
    def __init__(
        self,
        deserializers: Deserializers,
        *,
        check_crc: bool = True,
        corrupt: CorruptBatches | None = None,
    ) -> None:
        self._deserializers = deserializers
        #: What is done about batches that cannot be read.
        self.corrupt = corrupt or CorruptBatches()
        self._check_crc = check_crc
        self._lock = threading.Lock()
        #: In the order of their turns.
        self._queues: dict[TopicPartition, _Queue] = {}
        #: Fetches that nobody has begun to read, by partition, and the bytes of all of them.
        self._waiting_counts: dict[TopicPartition, int] = {}
        self._waiting_bytes = 0

    # -- the loop's side -------------------------------------------------------------------------

    def add(
        self, state: PartitionState, fetched: FetchedPartition, together: FetchedTogether
    ) -> None:
        topic_partition = state.topic_partition
        with self._lock:
            queue = self._queues.get(topic_partition)
            if queue is None:
                queue = self._queues[topic_partition] = _Queue(state)
            queue.waiting.append((fetched, together))
            self._waiting_counts[topic_partition] = len(queue.waiting)
            self._waiting_bytes += fetched.size_bytes

    def has(self, topic_partition: TopicPartition) -> bool:
        """Whether anything of the partition has not been handed out."""
        return topic_partition in self._queues

    def has_enough(self, topic_partition: TopicPartition) -> bool:
        """Whether a fetch of the partition has come that nobody has begun to read, and much else.

        While the polling thread decodes what came last, the next answer should be on its way.
        """
        return topic_partition in self._waiting_counts and self._waiting_bytes >= AHEAD_BYTES

    def drop(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Forget what was fetched; only on behalf of the polling thread."""
        with self._lock:
            for topic_partition in topic_partitions:
                queue = self._queues.pop(topic_partition, None)
                if queue is not None:
                    self._waiting_bytes -= sum(each.size_bytes for each, _ in queue.waiting)
                self._waiting_counts.pop(topic_partition, None)

    # -- the polling thread's side ---------------------------------------------------------------

    def next_reader(self) -> tuple[RecordReader | None, bool]:
        """Where to take from now, and whether a fetch was begun with that."""
        with self._lock:
            for topic_partition, queue in self._queues.items():
                if queue.state.is_paused:
                    continue
                if queue.reader is not None:
                    return queue.reader, False
                fetched, together = queue.waiting.popleft()
                self._waiting_bytes -= fetched.size_bytes
                if queue.waiting:
                    self._waiting_counts[topic_partition] = len(queue.waiting)
                else:
                    del self._waiting_counts[topic_partition]
                queue.reader = RecordReader(
                    queue.state,
                    fetched,
                    self._deserializers,
                    together=together,
                    check_crc=self._check_crc,
                    corrupt=self.corrupt,
                )
                return queue.reader, True
        return None, False

    def finish(self, reader: RecordReader) -> None:
        """All of it has been handed out: it is the turn of the next partition."""
        topic_partition = reader.state.topic_partition
        with self._lock:
            queue = self._queues.get(topic_partition)
            if queue is None or queue.reader is not reader:
                return
            queue.reader = None
            del self._queues[topic_partition]
            if queue.waiting:
                self._queues[topic_partition] = queue
