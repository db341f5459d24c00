"""What brokers have taken, batch by batch: for who counts as they do."""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.wire.records import NO_TIMESTAMP


class WrittenBatch(NamedTuple):
    """A batch that a broker has taken; its time is the largest of its records."""

    topic_partition: TopicPartition
    time_ms: int
    record_count: int
    size_bytes: int


def written_batches(batch: ProduceBatch) -> list[WrittenBatch]:
    """The batch itself, or the parts that were sent instead, once it is written."""
    if batch.parts:
        return [written for part in batch.parts for written in written_batches(part)]
    time_ms = batch.log_append_time_ms
    if time_ms == NO_TIMESTAMP:
        section = batch.section
        time_ms = max(batch.timestamps) if section is None else section.max_timestamp
    return [WrittenBatch(batch.topic_partition, time_ms, batch.record_count, batch.size_bytes)]
