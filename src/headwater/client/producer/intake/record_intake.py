"""The caller's half of a producer: interceptors, serializers, partitioner, accumulator, in order.

A plain record for which there is room is taken by `offer`, which is the hot path. All others go
through `steps`: a generator that yields whenever the caller must wait for something, and goes on
when that may be there. How one waits, in a thread or on a loop, is the shell's business.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias

from headwater.base.errors import KafkaError
from headwater.base.ids import validate_topic_name
from headwater.client.errors import UnknownTopicError
from headwater.client.given_items import given_topic
from headwater.client.kafka_errors.record_errors import MessageTooLargeError
from headwater.client.partitioner import partition_for_key
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.errors import BufferExhaustedError
from headwater.client.producer.intake.partitioners import PartitionQuestion
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.intake.serialized_record import (
    HEADER_OVERHEAD_BYTES,
    RECORD_OVERHEAD_BYTES,
    TIMESTAMP_MAX,
    SerializedRecord,
)
from headwater.client.producer.intake.serializers import checked_headers
from headwater.client.producer.intake.topic_route import TopicRoute
from headwater.client.producer.intake.wrong_arguments import wrong_timestamp
from headwater.client.producer.record import HeadersLike, ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata


class ForTopic(NamedTuple):
    """Wait until a topic is known, or until it was asked about again."""

    name: str
    is_known: bool


class ForMemory(NamedTuple):
    """Wait until `buffer.memory` has room for a batch with a record of that size."""

    size_bytes: int


class ForShare(NamedTuple):
    """Wait until it is known which share of a topic's records is traced."""

    topic: str


class ForTurn(NamedTuple):
    """Let the sender have its turn: a loop that does nothing but take records would not."""


Wait: TypeAlias = ForTopic | ForMemory | ForShare | ForTurn
CheckMaySend: TypeAlias = Callable[[PartitionQueue], None]
#: The signature of `RecordIntake.offer`.
Offer: TypeAlias = Callable[
    [str, Any, Any, int | None, HeadersLike | None, int | None, OnDelivery | None],
    DeliveryFuture | None,
]


class RecordIntake:
    """Called from any thread."""

    def __init__(
        self,
        options: SendOptions,
        accumulator: RecordAccumulator,
        routes: Mapping[str, TopicRoute],
        *,
        now_s: Callable[[], float],
        wake: Callable[[], None],
        on_exhausted: Callable[[], None],
    ) -> None:
        self._options = options
        self._accumulator = accumulator
        self._routes = routes
        #: The loop's time, from whichever thread.
        self._now_s = now_s
        self._wake = wake
        self._wall_ms = options.wall_ms
        self._lock = accumulator.lock
        self._batch_size_bytes = accumulator.batch_size_bytes
        self._ignores_keys = options.ignores_keys
        #: Raises if a record may not be sent now; None as long as nothing speaks against it.
        self._check: CheckMaySend | None = None
        self._refusal: KafkaError | None = None
        self._may_offer = options.are_plain
        self._on_exhausted = on_exhausted
        self.dropped_count = 0
        #: How many batches were opened, each of which gives the sender something to do.
        self.opened_count = 0

    def set_check(self, check_may_send: CheckMaySend) -> None:
        """Have every record checked from now on, with the queue that it would go to."""
        self._check = check_may_send

    def refuse_all(self, error: KafkaError) -> None:
        """From now on every record is refused with this error."""
        self._refusal = error
        self._may_offer = False

    def check(self, queue: PartitionQueue | None) -> None:
        """Raise if nothing may be sent now, to that queue if one is given."""
        if self._refusal is not None:
            # Its own for each caller: one that many raise would collect all their tracebacks.
            raise type(self._refusal)(*self._refusal.args)
        if self._check is not None and queue is not None:
            self._check(queue)

    # -- the hot path ----------------------------------------------------------------------------

    def offer(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        """Take a record of bytes for which a batch has room; None if it is not so simple."""
        route = self._routes.get(topic)
        if route is None or not self._may_offer or headers or type(value) is not bytes:
            return None
        size_bytes = RECORD_OVERHEAD_BYTES + len(value)
        if partition is not None:
            if not 0 <= partition < len(route.queues):
                return None
            queue = route.queues[partition]
        elif key is None or self._ignores_keys:
            queue = route.sticky
        elif type(key) is bytes:
            queue = route.queues[partition_for_key(key, len(route.queues))]
        else:
            return None
        if key is not None:
            if type(key) is not bytes:
                return None
            size_bytes += len(key)
        if self._check is not None:
            self._check(queue)
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        elif type(timestamp_ms) is not int or not 0 <= timestamp_ms <= TIMESTAMP_MAX:
            return None
        lock = self._lock
        # By hand, since `with` costs as much again as all that is done under the lock.
        lock.acquire()
        try:
            batch = queue.open
            if batch is None:
                return None
            size_bytes += batch.size_bytes
            if size_bytes > self._batch_size_bytes:
                return None
            batch.size_bytes = size_bytes
            timestamps = batch.timestamps
            index = len(timestamps)
            timestamps.append(timestamp_ms)
            batch.values.append(value)
            if batch.keys is not None:
                batch.keys.append(key)
            elif key is not None:
                batch.keys = [None] * index
                batch.keys.append(key)
            if batch.headers is not None:
                batch.headers.append(())
            if on_delivery is not None:
                batch.notify(index, on_delivery)
        finally:
            lock.release()
        return DeliveryFuture(batch, index)

    # -- any record ------------------------------------------------------------------------------

    def steps(
        self, record: ProducerRecord, on_delivery: OnDelivery | None
    ) -> Generator[Wait, None, DeliveryFuture]:
        """Take a record; yields what has to be waited for."""
        interceptors = self._options.interceptors
        if not interceptors:
            return (yield from self._steps(record, on_delivery))

        def tell(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            interceptors.on_acknowledgement(metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        record = interceptors.on_send(record)
        try:
            return (yield from self._steps(record, tell))
        except KafkaError as error:
            interceptors.on_acknowledgement(None, error)
            raise

    def serialized(self, record: ProducerRecord) -> tuple[bytes | None, bytes | None]:
        """Key and value as bytes."""
        key = self._options.serialize_key(record.topic, record.key)
        return key, self._options.serialize_value(record.topic, record.value)

    def _steps(
        self, record: ProducerRecord, on_delivery: OnDelivery | None
    ) -> Generator[Wait, None, DeliveryFuture]:
        topic = record.topic
        self.check(None)
        route = self._routes.get(topic)
        if route is None:
            route = yield from self._found(topic)
        key, value = self.serialized(record)
        if record.partition is not None and record.partition >= len(route.queues):
            # It may have been added a moment ago.
            yield ForTopic(topic, is_known=True)
            route = self._routes.get(topic, route)
        number = self._choose(route, record, key, value)
        queue = None if number is None else route.queues[number]
        ready = self._serialized_record(record, key, value, on_delivery)
        while True:
            target = queue or route.sticky
            self.check(target)
            future = self._accumulator.append(target, ready)
            if future is not None:
                return future
            if queue is None:
                target = route.sticky_for_new_batch()
                self.check(target)
            future = self._accumulator.append_to_new(target, ready, self._now_s())
            # A batch was opened, and the one before it is full; or memory is needed.
            self._wake()
            if future is not None:
                self.opened_count += 1
                if queue is None:
                    route.note_opened(target.open)
                return future
            if self._options.drops_when_full:
                return self._dropped(target, record, ready)
            yield ForMemory(ready.size_bytes)

    def _found(self, topic: str) -> Generator[Wait, None, TopicRoute]:
        """The route to a topic that may not be known yet."""
        while (route := self._routes.get(topic)) is None:
            validate_topic_name(given_topic(topic))
            yield ForTopic(topic, is_known=False)
        return route

    def _choose(
        self, route: TopicRoute, record: ProducerRecord, key: bytes | None, value: bytes | None
    ) -> int | None:
        """A partition's number; None for the sticky one."""
        count = len(route.queues)
        number = record.partition
        if number is None and self._options.partitioner is not None:
            number = self._options.partitioner(
                PartitionQuestion(
                    record.topic, record.key, key, record.value, value, count, route.available
                )
            )
        if number is None:
            if key is None or self._ignores_keys:
                return None
            return partition_for_key(key, count)
        if not 0 <= number < count:
            raise UnknownTopicError.partition(record.topic, number, count)
        return number

    def _serialized_record(
        self,
        record: ProducerRecord,
        key: bytes | None,
        value: bytes | None,
        on_delivery: OnDelivery | None,
    ) -> SerializedRecord:
        """The record as it goes into a batch, if there is nothing wrong with it."""
        headers = checked_headers(record.headers)
        timestamp_ms = self._wall_ms() if record.timestamp_ms is None else record.timestamp_ms
        if type(timestamp_ms) is not int or not 0 <= timestamp_ms <= TIMESTAMP_MAX:
            raise wrong_timestamp(timestamp_ms)
        size_bytes = self._options.overhead_bytes + len(key or b"") + len(value or b"")
        for name, content in headers:
            size_bytes += HEADER_OVERHEAD_BYTES + 4 * len(name) + len(content or b"")
        for limit, setting in (
            (self._options.record_bytes_max, "max.request.size"),
            (self._accumulator.buffer_bytes, "buffer.memory"),
        ):
            if size_bytes > limit:
                raise MessageTooLargeError(
                    f"A record of {size_bytes} bytes is larger than {setting}, which is {limit}."
                )
        return SerializedRecord(timestamp_ms, key, value, headers, size_bytes, on_delivery)

    def _dropped(
        self, queue: PartitionQueue, record: ProducerRecord, ready: SerializedRecord
    ) -> DeliveryFuture:
        self.dropped_count += 1
        self._on_exhausted()
        batch = self._accumulator.batch_of_dropped(queue, ready)
        batch.fail(
            BufferExhaustedError(
                f"A record for {queue.topic_partition} was dropped, since buffer.memory is used up."
            )
        )
        if self._options.on_drop is not None:
            self._options.on_drop(record.topic, record.key, record.value)
        return DeliveryFuture(batch, 0)
