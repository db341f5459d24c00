"""The future of one record: a batch and a place in it, so that it costs next to nothing.

It can be waited for from any thread with `result`, and on an event loop with `await`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any, Protocol

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.errors import DeadlineError
from headwater.client.given_items import given_seconds
from headwater.client.producer.record_metadata import RecordMetadata


class PendingRecords(Protocol):
    """Records whose fate is known at one time: a batch, for example."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def is_done(self) -> bool: ...

    def outcome(self, index: int) -> RecordMetadata | KafkaError: ...

    def when_done(self, callback: Callable[[Any], object]) -> None:
        """Call it with these records when they are done, at once if they are."""
        ...


class DeliveryFuture:
    """What becomes of a record. Do not wait for it in a callback of the producer's."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: PendingRecords, index: int) -> None:
        self._batch = batch
        self._index = index

    def __repr__(self) -> str:
        state = "pending" if not self._batch.is_done else str(self._batch.outcome(self._index))
        return f"<DeliveryFuture {self._batch.topic_partition}: {state}>"

    def done(self) -> bool:
        """Whether the record was written or has failed for good."""
        return self._batch.is_done

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the record to be written; raises what prevented it."""
        outcome = self._wait(timeout_s)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    def exception(self, timeout_s: float | None = None) -> KafkaError | None:
        """Wait until it is known what became of the record, and return what went wrong, if so."""
        outcome = self._wait(timeout_s)
        return outcome if isinstance(outcome, KafkaError) else None

    def add_done_callback(self, callback: Callable[[DeliveryFuture], object]) -> None:
        """Have it called with this future, at once if that is done, else by the sender's thread."""
        self._batch.when_done(lambda _: callback(self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self._batch.is_done:
            yield from done_on_loop(self._batch).__await__()
        outcome = self._batch.outcome(self._index)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    def _wait(self, timeout_s: float | None) -> RecordMetadata | KafkaError:
        batch = self._batch
        if not batch.is_done and not wait_in_thread(batch, given_seconds(timeout_s)):
            raise DeadlineError(
                f"A record for {batch.topic_partition} was not written within {timeout_s:g} s."
            )
        return batch.outcome(self._index)


def wait_in_thread(batch: PendingRecords, timeout_s: float | None) -> bool:
    """Wait until a batch is done; tells whether it is."""
    event = threading.Event()
    batch.when_done(lambda _: event.set())
    return event.wait(timeout_s)


def done_on_loop(batch: PendingRecords) -> asyncio.Future[None]:
    """A future of the running loop for the end of a batch, whichever loop completes that."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def resolve() -> None:
        if not future.done():
            future.set_result(None)

    def tell(_: PendingRecords) -> None:
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here:
            resolve()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(resolve)

    batch.when_done(tell)
    return future
