"""What those who consume with several threads need of a consumer: `Consumer` has all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


class ConsumerInterface(Protocol):
    """Used by one thread at a time, but for `wakeup`."""

    @property
    def commits_automatically(self) -> bool: ...

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None: ...

    def assignment(self) -> set[TopicPartition]: ...

    def poll(
        self, timeout_s: float = 1.0, max_records: int | None = None
    ) -> list[ConsumerRecord]: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def commit(self, offsets: Offsets | None = None, timeout_s: float | None = None) -> None: ...

    def commit_async(
        self, offsets: Offsets | None = None, callback: Callable[[Any, Any], object] | None = None
    ) -> None: ...

    def wakeup(self) -> None: ...

    def close(self, timeout_s: float | None = None) -> None: ...
