"""The future of many records that were sent by one call, batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from headwater.base.errors import KafkaError
from headwater.client.errors import DeadlineError
from headwater.client.given_items import given_seconds
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.delivery_future import done_on_loop
from headwater.client.producer.batches.written_batch import WrittenBatch, written_batches
from headwater.client.producer.record_metadata import RecordMetadata


class DeliveryGroup:
    """Done when all records are written or have failed. Its result is where each batch begins."""

    def __init__(self, batches: Sequence[ProduceBatch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        """How many records these are."""
        return sum(batch.record_count for batch in self._batches)

    def done(self) -> bool:
        return all(batch.is_done for batch in self._batches)

    def result(self, timeout_s: float | None = None) -> list[RecordMetadata]:
        """Wait for all to be written; raises the first of what prevented it."""
        self._wait(timeout_s)
        return self._result()

    def exception(self, timeout_s: float | None = None) -> KafkaError | None:
        """Wait until it is known what became of all, and return the first error, if any."""
        self._wait(timeout_s)
        return next((batch.error for batch in self._batches if batch.error is not None), None)

    def written(self) -> list[WrittenBatch]:
        """The batches of records that brokers have taken, once all is done without an error."""
        return [written for batch in self._batches for written in written_batches(batch)]

    def add_done_callback(self, callback: Callable[[DeliveryGroup], object]) -> None:
        """Have it called with this group when all is done, at once if that is so."""
        lock = threading.Lock()
        left = len(self._batches)

        def count(_: object) -> None:
            nonlocal left
            with lock:
                left -= 1
                is_last = left == 0
            if is_last:
                callback(self)

        if not left:
            callback(self)
        for batch in self._batches:
            batch.when_done(count)

    def __await__(self) -> Generator[Any, None, list[RecordMetadata]]:
        for batch in self._batches:
            if not batch.is_done:
                yield from done_on_loop(batch).__await__()
        return self._result()

    def _wait(self, timeout_s: float | None) -> None:
        event = threading.Event()
        self.add_done_callback(lambda _: event.set())
        if not event.wait(given_seconds(timeout_s)):
            raise DeadlineError(f"Not all of {len(self)} records were written in {timeout_s:g} s.")

    def _result(self) -> list[RecordMetadata]:
        outcomes = [batch.outcome(0) for batch in self._batches]
        for batch, outcome in zip(self._batches, outcomes, strict=True):
            if batch.error is not None:
                raise batch.error
            if isinstance(outcome, KafkaError):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, RecordMetadata)]
