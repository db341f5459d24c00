"""The clients that a worker uses, for threads and for asyncio, behind one interface.

The loop of a worker is written once, with `await`. `AsyncConsumer` and its kin are what it needs as
they are. Those for threads are wrapped so that each call is done when it is awaited: a coroutine
that uses nothing else never waits, and `run_now` runs it to its end like a function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from headwater.base.checks import InvariantError
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.admin import Admin
from headwater.client.admin.configs import ConfigEntry, ConfigResource
from headwater.client.admin.outcomes import Outcomes
from headwater.client.admin.topics import CreatedTopic, NewTopic
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.producer import Producer
from headwater.client.producer.record import HeadersLike

T = TypeVar("T")

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
Committed = dict[TopicPartition, OffsetAndMetadata | None]


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """What comes of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    work.close()
    raise InvariantError("something was awaited without an event loop")


class WorkerConsumer(Protocol):
    def subscribe(self, topics: Iterable[str], *, listener: RebalanceListener) -> object: ...
    def poll(self, timeout_s: float, max_records: int) -> Awaitable[list[ConsumerRecord]]: ...
    def pause(self, partitions: Iterable[TopicPartition]) -> Awaitable[None]: ...
    def resume(self, partitions: Iterable[TopicPartition]) -> Awaitable[None]: ...
    def seek(
        self, partition: TopicPartition, offset: int, leader_epoch: int
    ) -> Awaitable[None]: ...
    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> Awaitable[None]: ...
    def commit(self, offsets: Offsets | None, timeout_s: float) -> Awaitable[None]: ...
    def committed(self, partitions: Iterable[TopicPartition]) -> Awaitable[Committed]: ...
    @property
    def connection_failure(self) -> KafkaError | None: ...
    def group_identity(self) -> GroupIdentity: ...
    def committed_elsewhere(self, offsets: Offsets) -> None: ...
    def wakeup(self) -> None: ...
    def close(self, timeout_s: float) -> Awaitable[None]: ...


class WorkerProducer(Protocol):
    def start(self) -> Awaitable[None]: ...
    def init_transactions(self) -> Awaitable[None]: ...
    def begin_transaction(self) -> Awaitable[None]: ...
    def send(
        self, topic: str, value: Any = None, key: Any = None, *, headers: HeadersLike | None = ()
    ) -> Awaitable[DeliveryFuture]: ...
    def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupIdentity
    ) -> Awaitable[None]: ...
    def commit_transaction(self) -> Awaitable[None]: ...
    def abort_transaction(self) -> Awaitable[None]: ...
    def close(self, timeout_s: float) -> Awaitable[None]: ...


class WorkerAdmin(Protocol):
    def start(self) -> Awaitable[None]: ...
    def list_topics(self) -> Awaitable[list[TopicInfo]]: ...
    def describe_configs(
        self, resources: Collection[ConfigResource], *, names: Collection[str]
    ) -> Awaitable[Outcomes[ConfigResource, list[ConfigEntry]]]: ...
    def create_topics(
        self, topics: Collection[NewTopic], *, raise_errors: bool
    ) -> Awaitable[Outcomes[str, CreatedTopic]]: ...
    def close(self) -> Awaitable[None]: ...


class ConsumerNow:
    """A `Consumer` whose calls are done when they are awaited."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def subscribe(self, topics: Iterable[str], *, listener: RebalanceListener) -> None:
        self._consumer.subscribe(topics, listener=listener)

    async def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        return self._consumer.poll(timeout_s, max_records)

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.pause(partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.resume(partitions)

    async def seek(self, partition: TopicPartition, offset: int, leader_epoch: int) -> None:
        self._consumer.seek(partition, offset, leader_epoch)

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.seek_to_beginning(partitions)

    async def commit(self, offsets: Offsets | None, timeout_s: float) -> None:
        self._consumer.commit(offsets, timeout_s)

    async def committed(self, partitions: Iterable[TopicPartition]) -> Committed:
        return self._consumer.committed(partitions)

    def group_identity(self) -> GroupIdentity:
        return self._consumer.group_identity()

    @property
    def connection_failure(self) -> KafkaError | None:
        return self._consumer.connection_failure

    @property
    def is_traced(self) -> bool:
        return self._consumer.is_traced

    def handling(self, record: ConsumerRecord) -> AbstractContextManager[None]:
        return self._consumer.handling(record)

    def committed_elsewhere(self, offsets: Offsets) -> None:
        self._consumer.committed_elsewhere(offsets)

    def wakeup(self) -> None:
        self._consumer.wakeup()

    async def close(self, timeout_s: float) -> None:
        self._consumer.close(timeout_s)


class ProducerNow:
    """A `Producer` whose calls are done when they are awaited."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._producer = Producer(config)

    async def start(self) -> None:
        """It runs from the beginning."""

    async def init_transactions(self) -> None:
        self._producer.init_transactions()

    async def begin_transaction(self) -> None:
        self._producer.begin_transaction()

    async def send(
        self, topic: str, value: Any = None, key: Any = None, *, headers: HeadersLike | None = ()
    ) -> DeliveryFuture:
        return self._producer.send(topic, value, key, headers=headers)

    async def send_offsets_to_transaction(self, offsets: Offsets, group: GroupIdentity) -> None:
        self._producer.send_offsets_to_transaction(offsets, group)

    async def commit_transaction(self) -> None:
        self._producer.commit_transaction()

    async def abort_transaction(self) -> None:
        self._producer.abort_transaction()

    async def close(self, timeout_s: float) -> None:
        self._producer.close(timeout_s)


class AdminNow:
    """An `Admin` whose calls are done when they are awaited."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._admin = Admin(config)

    async def start(self) -> None:
        """It runs from the beginning."""

    async def list_topics(self) -> list[TopicInfo]:
        return self._admin.list_topics()

    async def describe_configs(
        self, resources: Collection[ConfigResource], *, names: Collection[str]
    ) -> Outcomes[ConfigResource, list[ConfigEntry]]:
        return self._admin.describe_configs(resources, names=names)

    async def create_topics(
        self, topics: Collection[NewTopic], *, raise_errors: bool
    ) -> Outcomes[str, CreatedTopic]:
        return self._admin.create_topics(topics, raise_errors=raise_errors)

    async def close(self) -> None:
        self._admin.close()
