"""One consumer per thread: the first of the two ways to consume with several threads.

    def make_consumer() -> Consumer:
        consumer = Consumer(bootstrap_servers=..., group_id="billing", enable_auto_commit=False)
        consumer.subscribe(["orders"])
        return consumer

    with ConsumerThreads(make_consumer, charge, thread_count=4) as threads:
        threads.join()                      # until another thread calls threads.stop()

Every thread has a consumer of its own, polls it, handles the records one after the other and
commits what is done. So a partition's order is kept, and nothing is shared; but more threads than
partitions are of no use, and a handler that takes long is inside `max.poll.interval.ms`.

When a handler fails for good, or a consumer does, all threads end, or just that one begins anew
with another consumer (`restart_backoff_s`). In both cases what was not handled is not committed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Final, Self

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import WakeupError
from headwater.client.consumer.interface import ConsumerInterface
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.failure_policy import FailurePolicy, Handle, Interrupted

_logger = logging.getLogger("headwater.client")

_POLL_TIMEOUT_S: Final = 1.0


class ConsumerThreads:
    """`restart_backoff_s` is the time before a failed thread begins anew; None ends all threads."""

    def __init__(
        self,
        make_consumer: Callable[[], ConsumerInterface],
        handle: Handle,
        thread_count: int,
        *,
        policy: FailurePolicy | None = None,
        restart_backoff_s: float | None = None,
        close_timeout_s: float = 30.0,
    ) -> None:
        if thread_count < 1:
            raise ValueError("thread_count must be at least 1.")
        self._make_consumer = make_consumer
        self._handle = handle
        self._policy = policy or FailurePolicy.stop()
        self._restart_backoff_s = restart_backoff_s
        self._close_timeout_s = close_timeout_s
        self._lock = threading.Lock()
        self._consumers: set[ConsumerInterface] = set()
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"consumer-{number}", daemon=True)
            for number in range(thread_count)
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None:
            self.join()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every thread end after the record that it is handling; from any thread."""
        self._ending.set()
        with self._lock:
            for consumer in self._consumers:
                consumer.wakeup()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until all threads have ended, and tell whether they have; raises what ended them."""
        for thread in self._threads:
            thread.join(timeout_s)
        if self._failure is not None:
            raise self._failure
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._consume()
            except BaseException as error:
                if self._restart_backoff_s is None or not isinstance(error, Exception):
                    with self._lock:
                        self._failure = self._failure or error
                    self.stop()
                    return
                _logger.warning("A consumer's thread failed and starts again: %r", error)
                self._ending.wait(self._restart_backoff_s)

    def _consume(self) -> None:
        """The life of one consumer."""
        consumer = self._make_consumer()
        with self._lock:
            self._consumers.add(consumer)
        try:
            while not self._ending.is_set():
                try:
                    records = consumer.poll(_POLL_TIMEOUT_S)
                except WakeupError:
                    continue
                self._handle_all(consumer, records)
        finally:
            with self._lock:
                self._consumers.discard(consumer)
            consumer.close(self._close_timeout_s)

    def _handle_all(self, consumer: ConsumerInterface, records: Sequence[ConsumerRecord]) -> None:
        """Handle and commit them, or as many as can be."""
        done_count = 0
        try:
            for record in records:
                if self._ending.is_set():
                    break
                self._policy.run(self._handle, record, self._ending)
                done_count += 1
        except Interrupted:
            pass
        finally:
            self._settle(consumer, records[:done_count], records[done_count:])

    def _settle(
        self,
        consumer: ConsumerInterface,
        done: Sequence[ConsumerRecord],
        left: Sequence[ConsumerRecord],
    ) -> None:
        """Commit what is done, and go back to what is not, which closing would commit otherwise."""
        if left:
            assigned = consumer.assignment()
            for topic_partition, record in _first_of_each(left).items():
                if topic_partition in assigned:
                    consumer.seek(topic_partition, record.offset)
        if done and not consumer.commits_automatically:
            try:
                consumer.commit(
                    {
                        topic_partition: OffsetAndMetadata(
                            record.offset + 1, "", record.leader_epoch
                        )
                        for topic_partition, record in _first_of_each(reversed(done)).items()
                    }
                )
            except KafkaError as error:
                _logger.warning(
                    "What was handled could not be committed, and may be handled again: %s", error
                )


def _first_of_each(records: Iterable[ConsumerRecord]) -> dict[TopicPartition, ConsumerRecord]:
    """The first of them for each partition."""
    firsts: dict[TopicPartition, ConsumerRecord] = {}
    for record in records:
        firsts.setdefault(TopicPartition(record.topic, record.partition), record)
    return firsts
