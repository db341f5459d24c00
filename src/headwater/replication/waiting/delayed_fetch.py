"""Fetch requests that wait until there is enough for them to read.

It keeps count of what it could read of each partition, so that an append to one of a thousand
partitions costs one look at that one. When `min_bytes` are there, or when something must be told at
once (an error, a new leader), the request is read anew as a whole and answered; so it is when its
time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.fetch import (
    Fetched,
    FetchedPartition,
    FetchLimits,
    FetchTarget,
    check_reader,
    read_partition,
)
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.purgatory import DelayedOperation


class _Awaited:
    """A partition that a parked fetch waits for, and what it could read of it so far."""

    __slots__ = ("partition", "size_bytes", "target")

    def __init__(self, target: FetchTarget, partition: Partition, size_bytes: int) -> None:
        self.target = target
        self.partition = partition
        self.size_bytes = size_bytes


class DelayedFetch(DelayedOperation[TopicPartition]):
    __slots__ = ("_awaited", "_limits", "_respond", "_total_bytes")

    def __init__(
        self,
        fetched: Sequence[FetchedPartition],
        limits: FetchLimits,
        respond: Callable[[], None],
    ) -> None:
        super().__init__()
        self._awaited = {
            each.partition.topic_partition: _Awaited(each.target, each.partition, each.size_bytes)
            for each in fetched
            if each.partition is not None
        }
        self._limits = limits
        self._respond = respond
        self._total_bytes = sum(each.size_bytes for each in self._awaited.values())

    @property
    def keys(self) -> list[TopicPartition]:
        return list(self._awaited)

    def try_complete(self, key: TopicPartition | None) -> bool:
        if key is None:
            return self._total_bytes >= self._limits.min_bytes
        awaited = self._awaited[key]
        target, partition = awaited.target, awaited.partition
        try:
            check_reader(partition, target, self._limits)
            read = read_partition(
                partition, target, target.max_bytes, self._limits, min_one_batch=True
            )
        except KafkaError:
            return True  # Reading it anew will tell.
        size_bytes = read.log_read.counted_bytes
        self._total_bytes += size_bytes - awaited.size_bytes
        awaited.size_bytes = size_bytes
        return self._total_bytes >= self._limits.min_bytes or read.log_read.has_more

    def on_complete(self) -> None:
        self._respond()


class DelayedReplicaFetch(DelayedOperation[TopicPartition]):
    """A follower's fetch in a session, which knows what is worth reading: that is read anew."""

    __slots__ = ("_fetched", "_limits", "_read", "_respond")

    def __init__(
        self, limits: FetchLimits, read: Callable[[], Fetched], respond: Callable[[Fetched], None]
    ) -> None:
        super().__init__()
        self._limits = limits
        self._read = read
        self._respond = respond
        self._fetched: Fetched | None = None

    def try_complete(self, key: TopicPartition | None) -> bool:
        fetched = self._read()
        if fetched.is_urgent or fetched.size_bytes >= self._limits.min_bytes:
            self._fetched = fetched
            return True
        return False

    def wake(self) -> None:
        """Something has happened to a partition of the session."""
        if not self.is_completed and self.try_complete(None):
            self.complete()

    def on_complete(self) -> None:
        self._respond(self._read() if self._fetched is None else self._fetched)
