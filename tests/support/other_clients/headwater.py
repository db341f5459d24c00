"""Headwater's own client, as the conformance tests use the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from headwater import Consumer, KafkaError, Producer
from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import TimestampType
from tests.support.other_clients.contract import (
    DEFAULT_SENDING,
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    Consumed,
    Message,
    Sending,
    Start,
)


class HeadwaterClient:
    """See `contract.Client`."""

    name = "own-client"
    sets_timestamps = True
    reports_offsets = True
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": sending.compression,
                "acks": sending.acks,
                "enable.idempotence": sending.is_idempotent,
                "max.request.size": sending.message_bytes_max,
                "delivery.timeout.ms": int(sending.timeout_s * 1000),
                "request.timeout.ms": int(sending.timeout_s * 1000) - 100,
                "linger.ms": 5,
            }
        )
        with _named_errors(), producer:
            sent = [
                producer.send(
                    topic,
                    message.value,
                    message.key,
                    partition=message.partition,
                    headers=message.headers,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(TIMEOUT_S)
            return [each.result(TIMEOUT_S).offset for each in sent]

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        place = TopicPartition(topic, partition)
        found: list[Consumed] = []
        with self._consumer(place) as consumer:
            if start == "earliest":
                consumer.seek_to_beginning([place])
            elif start == "latest":
                consumer.seek_to_end([place])
            else:
                consumer.seek(place, int(start))
            end = consumer.end_offsets([place])[place]
            deadline = time.monotonic() + TIMEOUT_S
            while consumer.position(place) < end:
                assert time.monotonic() < deadline, f"the end is {end}, and {len(found)} came"
                found += map(_consumed, consumer.poll(0.2))
        return found

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        offset = self.offset_for_time(topic, timestamp_ms, partition)
        return self.consume(topic, "latest" if offset is None else offset, partition)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)
        with self._consumer(place) as consumer:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else found.offset

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        with self._consumer(place) as consumer:
            low = consumer.beginning_offsets([place])[place]
            return low, consumer.end_offsets([place])[place]

    def partition_counts(self) -> dict[str, int]:
        with _named_errors(), Consumer(bootstrap_servers=self._bootstrap) as consumer:
            return {topic: len(consumer.partitions_for(topic)) for topic in consumer.topics()}

    @contextmanager
    def _consumer(self, place: TopicPartition) -> Iterator[Consumer]:
        consumer = Consumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        with _named_errors(), consumer:
            consumer.assign([place])
            yield consumer


def _consumed(record: ConsumerRecord) -> Consumed:
    return Consumed(
        record.offset,
        record.timestamp,
        record.timestamp_type is TimestampType.LOG_APPEND_TIME,
        record.key,
        record.value,
        record.headers,
    )


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ClientError(error.code.name, str(error)) from error
