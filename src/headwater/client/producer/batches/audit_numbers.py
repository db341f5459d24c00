"""Numbers the records of a producer, stream by stream, so that every single one can be missed.

A record takes its number in the moment in which it takes its place in a batch, under the
accumulator's lock: so numbers are in the order of sending, and whatever becomes of the batch, sent
again, split or given up, they stay. What fails for good leaves a gap that an audit finds, and is
counted here as given up. A record that has an id already is a copy, and keeps it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from headwater.base.audit_id import AUDIT_HEADER, AUDIT_ID_BYTES, AuditId, AuditStream
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.intake.serialized_record import (
    HEADER_OVERHEAD_BYTES,
    SerializedRecord,
)

#: About what an id adds to a record.
AUDIT_HEADER_BYTES: Final = HEADER_OVERHEAD_BYTES + len(AUDIT_HEADER) + AUDIT_ID_BYTES


class EndedBatch(NamedTuple):
    """What became of a batch, for who counts: its time is the largest of its records."""

    topic_partition: TopicPartition
    time_ms: int
    acknowledged_count: int
    given_up_count: int
    size_bytes: int


OnBatchEnded: TypeAlias = Callable[[EndedBatch], object]


class StreamNumbers:
    """The numbers of one partition; guarded by the accumulator's lock."""

    __slots__ = ("next_number", "stream")

    def __init__(self, stream: AuditStream) -> None:
        self.stream = stream
        self.next_number = 0

    def take(self, count: int) -> int:
        """The first of so many numbers."""
        first = self.next_number
        self.next_number += count
        return first


class NumberedBatch(ProduceBatch):
    """Gives each record that it takes the next number."""

    __slots__ = ("_numbers",)

    def __init__(
        self,
        topic_partition: TopicPartition,
        opened_s: float,
        reserved_bytes: int,
        numbers: StreamNumbers,
    ) -> None:
        super().__init__(topic_partition, opened_s, reserved_bytes)
        self._numbers = numbers

    def add(self, record: SerializedRecord) -> int:
        headers = record.headers
        if not any(name == AUDIT_HEADER for name, _ in headers):
            numbers = self._numbers
            audit_id = AuditId(*numbers.stream, numbers.take(1), record.timestamp_ms)
            record = record._replace(headers=(*headers, (AUDIT_HEADER, audit_id.encode())))
        return super().add(record)


class AuditNumbers:
    """Those of one producer."""

    def __init__(self, generator: random.Random, on_ended: OnBatchEnded) -> None:
        self._generator = generator
        self._on_ended = on_ended
        self._processes: dict[str, int] = {}
        self._streams: dict[TopicPartition, StreamNumbers] = {}
        self.acknowledged_count = 0
        self.given_up_count = 0

    @property
    def numbered_count(self) -> int:
        """How many ids were given."""
        return sum(numbers.next_number for numbers in list(self._streams.values()))

    def numbers(self, topic_partition: TopicPartition) -> StreamNumbers:
        """Those of a partition; under the accumulator's lock."""
        found = self._streams.get(topic_partition)
        if found is None:
            topic, partition = topic_partition
            process = self._processes.get(topic)
            if process is None:
                process = self._processes[topic] = self._generator.getrandbits(64)
            found = self._streams[topic_partition] = StreamNumbers(AuditStream(process, partition))
        return found

    def make_batch(
        self, topic_partition: TopicPartition, opened_s: float, reserved_bytes: int
    ) -> ProduceBatch:
        """A batch that numbers its records; under the accumulator's lock."""
        numbers = self.numbers(topic_partition)
        batch = NumberedBatch(topic_partition, opened_s, reserved_bytes, numbers)
        batch.when_done(lambda batch: self._batch_ended(batch, max(batch.timestamps)))
        return batch

    def make_batch_of_section(
        self,
        topic_partition: TopicPartition,
        section: RecordSection,
        opened_s: float,
        reserved_bytes: int,
    ) -> ProduceBatch:
        """A batch of records that were numbered when they were encoded."""
        batch = ProduceBatch.of_section(topic_partition, section, opened_s, reserved_bytes)
        batch.when_done(lambda batch: self._batch_ended(batch, section.max_timestamp))
        return batch

    def gave_up(self, count: int) -> None:
        """So many records were numbered and never came into a batch."""
        self.given_up_count += count

    def _batch_ended(self, batch: ProduceBatch, time_ms: int) -> None:
        count = batch.record_count
        failed = 0
        if batch.error is not None:
            # Of a batch that was split, a part may have been written.
            failed = sum(isinstance(batch.outcome(at), KafkaError) for at in range(count))
        self.given_up_count += failed
        self.acknowledged_count += count - failed
        self._on_ended(
            EndedBatch(batch.topic_partition, time_ms, count - failed, failed, batch.size_bytes)
        )
