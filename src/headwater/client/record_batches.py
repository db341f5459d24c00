"""Records on their way out, gathered into one batch after the other for each partition.

Sans-io: the producer around it says what time it is and does the sending. A partition's batches
form a queue. The last one is open until it is full; the first one is handed out by `take_ready`
when it is full, has waited for company long enough, or everything must go. A partition has at most
one batch on its way, and one that must be sent again goes back to the front: so records are
stored in the order in which they were given, whatever is repeated.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.wire.records import HEADER_SIZE, Compression, Header, Record, encode_batch

#: What a record takes beyond key, value and headers: at most so much, and hardly ever.
RECORD_OVERHEAD_BYTES: Final = 21
HEADER_OVERHEAD_BYTES: Final = 10

_new_tuple = tuple.__new__


class RecordBatch:
    """Records for one partition that are sent, and succeed or fail, together."""

    __slots__ = (
        "attempt_count",
        "encoded",
        "is_full",
        "not_before_s",
        "opened_s",
        "records",
        "sent_s",
        "size_bytes",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, opened_s: float) -> None:
        self.topic_partition = topic_partition
        self.records: list[Record] = []
        #: An upper bound of the batch's size before compression.
        self.size_bytes = HEADER_SIZE
        self.opened_s = opened_s
        self.sent_s = opened_s
        self.is_full = False
        self.attempt_count = 0
        self.not_before_s = 0.0
        self.encoded: bytes | None = None

    def encode(self, compression: Compression, level: int | None) -> bytes:
        """The batch's bytes, made once."""
        if self.encoded is None:
            self.encoded = encode_batch(
                self.records, compression=compression, compression_level=level
            )
        return self.encoded

    def halves(self) -> "tuple[RecordBatch, RecordBatch]":
        """Two batches instead of one that is too large for its topic."""
        check(len(self.records) > 1, "a batch of one record has no halves")
        middle = len(self.records) // 2
        return self._part(self.records[:middle]), self._part(self.records[middle:])

    def _part(self, records: list[Record]) -> "RecordBatch":
        part = RecordBatch(self.topic_partition, self.opened_s)
        part.records = [record._replace(offset=index) for index, record in enumerate(records)]
        part.size_bytes += sum(map(record_size, records))
        part.is_full = True
        part.attempt_count = self.attempt_count
        return part


def record_size(record: Record) -> int:
    """At most so many bytes in a batch."""
    size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    return size + headers_size(record.headers)


def headers_size(headers: tuple[Header, ...]) -> int:
    return sum(HEADER_OVERHEAD_BYTES + 4 * len(name) + len(value or b"") for name, value in headers)


class RecordBatches:
    """The queues of all partitions."""

    def __init__(self, *, batch_size_bytes: int, batch_records_max: int, linger_s: float) -> None:
        self.buffered_bytes = 0
        self.record_count = 0
        self._batch_size_bytes = batch_size_bytes
        self._batch_records_max = batch_records_max
        self._linger_s = linger_s
        self._queues: dict[TopicPartition, deque[RecordBatch]] = {}
        self._on_their_way: dict[TopicPartition, RecordBatch] = {}

    @property
    def is_empty(self) -> bool:
        """Whether every record has been written or has failed."""
        return self.record_count == 0

    def add(
        self,
        topic_partition: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        now_s: float,
    ) -> RecordBatch | None:
        """Put a record into its partition's open batch; returns a batch that this made full."""
        size = RECORD_OVERHEAD_BYTES
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        if headers:
            size += headers_size(headers)
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._queues[topic_partition] = deque()
        filled = None
        batch = queue[-1] if queue else None
        if batch is None or batch.is_full:
            batch = RecordBatch(topic_partition, now_s)
            queue.append(batch)
        elif batch.size_bytes + size > self._batch_size_bytes:
            batch.is_full = True
            filled = batch
            batch = RecordBatch(topic_partition, now_s)
            queue.append(batch)
        records = batch.records
        records.append(_new_tuple(Record, (len(records), timestamp_ms, key, value, headers)))
        batch.size_bytes += size
        self.buffered_bytes += size
        self.record_count += 1
        if len(records) >= self._batch_records_max or batch.size_bytes >= self._batch_size_bytes:
            batch.is_full = True
            # Both may be full now; whoever encodes early may leave this one for later.
            filled = filled or batch
        return filled

    def take_ready(self, now_s: float, *, everything: bool) -> list[RecordBatch]:
        """The batches to send now, of each partition at most one, until they are settled."""
        ready = [
            batch for batch in self._first_batches() if self._due_s(batch, everything) <= now_s
        ]
        for batch in ready:
            batch.is_full = True
            batch.sent_s = now_s
            batch.attempt_count += 1
            queue = self._queues[batch.topic_partition]
            queue.popleft()
            if not queue:
                del self._queues[batch.topic_partition]
            self._on_their_way[batch.topic_partition] = batch
        return ready

    def next_due_s(self, *, everything: bool) -> float | None:
        """When `take_ready` will have something, if nothing is added or settled before."""
        return min(
            (self._due_s(batch, everything) for batch in self._first_batches()), default=None
        )

    def settle(self, batch: RecordBatch) -> None:
        """The batch was written or has failed for good: the partition's next one may go."""
        self._return(batch)
        self.record_count -= len(batch.records)
        self.buffered_bytes -= batch.size_bytes - HEADER_SIZE

    def send_again(self, batch: RecordBatch, not_before_s: float) -> None:
        """The batch goes first among its partition's, but not before that time."""
        self._return(batch)
        batch.not_before_s = not_before_s
        self._put_first(batch)

    def send_in_halves(self, batch: RecordBatch) -> None:
        """The batch was too large: its two halves go instead."""
        self._return(batch)
        for half in reversed(batch.halves()):
            self._put_first(half)

    def abandon(self) -> list[RecordBatch]:
        """Take out all batches, sent or not; none of them will be settled."""
        left = [*self._on_their_way.values(), *(b for q in self._queues.values() for b in q)]
        self._queues.clear()
        self._on_their_way.clear()
        self.buffered_bytes = self.record_count = 0
        return left

    def _first_batches(self) -> Iterator[RecordBatch]:
        on_their_way = self._on_their_way
        for topic_partition, queue in self._queues.items():
            if topic_partition not in on_their_way:
                yield queue[0]

    def _due_s(self, batch: RecordBatch, everything: bool) -> float:
        if batch.is_full or everything:
            return batch.not_before_s
        return max(batch.not_before_s, batch.opened_s + self._linger_s)

    def _return(self, batch: RecordBatch) -> None:
        taken = self._on_their_way.pop(batch.topic_partition, None)
        check(taken is batch, "a batch for %s is not on its way", batch.topic_partition)

    def _put_first(self, batch: RecordBatch) -> None:
        self._queues.setdefault(batch.topic_partition, deque()).appendleft(batch)
