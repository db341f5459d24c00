"""A producer for tests of shipping: it keeps what it was sent and ends as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headwater.base.errors import KafkaError
from headwater.client.errors import ClientClosedError
from headwater.client.producer.record_metadata import RecordMetadata
from headwater.wire.records import Header


class FakeDelivery:
    """A future that a test completes."""

    def __init__(self, value: bytes | None) -> None:
        self.value = value
        self._outcome: RecordMetadata | KafkaError | None = None
        self._callbacks: list[Callable[[Any], object]] = []

    def done(self) -> bool:
        return self._outcome is not None

    def exception(self, timeout_s: float | None = None) -> KafkaError | None:
        assert self._outcome is not None
        return self._outcome if isinstance(self._outcome, KafkaError) else None

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        assert isinstance(self._outcome, RecordMetadata)
        return self._outcome

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        if self.done():
            callback(self)
        else:
            self._callbacks.append(callback)

    def complete(self, outcome: RecordMetadata | KafkaError) -> None:
        if self._outcome is not None:
            return
        self._outcome = outcome
        for callback in self._callbacks:
            callback(self)


class FakeLog:
    """One partition, and the producers that write to it, one after the other.

    `refuses` says why a record is never taken by the broker, `raises` what `send` raises for it.
    While `is_held` nothing is answered.
    """

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.topics: list[str] = []
        self.is_held = False
        self.refuses: Callable[[bytes | None], KafkaError | None] = lambda value: None
        self.raises: Callable[[str], KafkaError | None] = lambda topic: None
        self.pending: list[FakeDelivery] = []
        self.producer_count = 0
        self.is_spent: KafkaError | None = None
        self.lock = threading.RLock()

    def make_producer(self) -> FakeProducer:
        self.producer_count += 1
        self.is_spent = None
        return FakeProducer(self)

    def release(self, count: int | None = None) -> None:
        """Answer what is pending, from the oldest on."""
        with self.lock:
            for delivery in self.pending[:count]:
                self._answer(delivery)
            del self.pending[:count]

    def _answer(self, delivery: FakeDelivery) -> None:
        error = self.is_spent or self.refuses(delivery.value)
        if error is not None:
            delivery.complete(error)
            return
        self.values.append(delivery.value)
        delivery.complete(RecordMetadata("t", 0, len(self.values) - 1, 0))


class FakeProducer:
    def __init__(self, log: FakeLog) -> None:
        self._log = log

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> FakeDelivery:
        error = self._log.is_spent or self._log.raises(topic)
        if error is not None:
            raise error
        delivery = FakeDelivery(value)
        with self._log.lock:
            self._log.topics.append(topic)
            self._log.pending.append(delivery)
            if not self._log.is_held:
                self._log.release()
        return delivery

    def partitions_for(self, topic: str) -> list[object]:
        error = self._log.raises(topic)
        if error is not None:
            raise error
        return [topic]

    def close(self, timeout_s: float | None = None) -> None:
        with self._log.lock:
            for delivery in self._log.pending:
                delivery.complete(ClientClosedError())
            self._log.pending.clear()

    def metrics(self) -> dict[str, float]:
        return {"record-send-total": float(len(self._log.topics))}
