"""A consumer without a cluster: hands out the records it was given, and remembers commits.

Rebalances are scripted: the next poll tells the listener. A poll that finds nothing waits for news,
as the real one does, so tests need no patience.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import ConcurrentUseError, WakeupError
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import TimestampType

TOPIC = "orders"


def record(partition: int, offset: int, key: bytes | None = None) -> ConsumerRecord:
    return ConsumerRecord(
        TOPIC, partition, offset, 0, TimestampType.CREATE_TIME, key, b"%d" % offset, (), 0
    )


class FakeConsumer:
    def __init__(
        self, logs: Mapping[int, list[ConsumerRecord]], *, commits_automatically: bool = False
    ) -> None:
        self.commits_automatically = commits_automatically
        self.logs = {TopicPartition(TOPIC, number): log for number, log in logs.items()}
        #: Offsets of the next records.
        self.positions = dict.fromkeys(self.logs, 0)
        self.commits: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.pause_count = 0
        self.is_closed = False
        #: Set when the listener is being told of a rebalance.
        self.telling = threading.Event()
        self.commit_error: KafkaError | None = None
        self._listener: RebalanceListener | None = None
        self._events: list[tuple[str, frozenset[TopicPartition]]] = []
        self._callbacks: list[Callable[[], object]] = []
        self._news = threading.Event()
        self._is_woken = False
        self._user = threading.Lock()

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        self._listener = listener

    def assignment(self) -> set[TopicPartition]:
        return set(self.positions)

    def rebalance(self, method: str, *partitions: int) -> None:
        """Let the next poll tell the listener; from any thread."""
        names = frozenset(TopicPartition(TOPIC, number) for number in partitions)
        self._events.append((method, names))
        self._news.set()

    def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[ConsumerRecord]:
        if not self._user.acquire(blocking=False):
            raise ConcurrentUseError("two threads poll")
        try:
            self._news.clear()
            for attempt in range(2):
                if self._is_woken:
                    self._is_woken = False
                    raise WakeupError("woken")
                self._tell()
                records = self._take(max_records or 500)
                if records or attempt:
                    return records
                self._news.wait(timeout_s)
            return []
        finally:
            self._user.release()

    def _tell(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        while self._events:
            method, partitions = self._events.pop(0)
            if self._listener is not None:
                self.telling.set()
                getattr(self._listener, method)(self, partitions)
            for topic_partition in partitions:
                if method == "on_partitions_assigned":
                    self.positions[topic_partition] = self.commits.get(topic_partition, 0)
                else:
                    del self.positions[topic_partition]
                    self.paused.discard(topic_partition)

    def _take(self, count: int) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        for topic_partition, position in self.positions.items():
            if topic_partition in self.paused:
                continue
            log = self.logs[topic_partition]
            found = [one for one in log if one.offset >= position][: count - len(taken)]
            if found:
                self.positions[topic_partition] = found[-1].offset + 1
                taken += found
        return taken

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.pause_count += 1
        self.paused |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        for topic_partition, offset in (offsets or self.positions).items():
            assert topic_partition in self.positions, "committed for others"
            self.commits[topic_partition] = offset if isinstance(offset, int) else offset.offset

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: Callable[[Any, Any], object] | None = None,
    ) -> None:
        error = self.commit_error
        if error is None:
            self.commit(offsets)
        if callback is not None:
            self._callbacks.append(lambda: callback(offsets, error))

    def wakeup(self) -> None:
        self._is_woken = True
        self._news.set()

    def close(self, timeout_s: float | None = None) -> None:
        if self.commits_automatically:
            self.commit()
        self.is_closed = True
