"""Counts what becomes of the records that a command sends, and keeps the first failure."""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.client.producer.record_metadata import RecordMetadata


class Deliveries:
    """`note` is the producer's callback for a record."""

    def __init__(self) -> None:
        self.written_count = 0
        self.failed_count = 0
        self.failure: KafkaError | None = None

    def note(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if error is None:
            self.written_count += 1
            return
        self.failed_count += 1
        self.failure = self.failure or error
