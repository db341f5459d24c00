"""confluent-kafka under load: its calls for one record, and those for many at once.

There is no callback per record: `delivery.report.only.error` keeps librdkafka from calling Python
for each, which would be its limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.client.load import (
    POLLED_COUNT_MAX,
    TUNED_BATCH_BYTES,
    TUNED_LINGER_MS,
    WAIT_S,
    Load,
    Stopwatch,
    TooFewRecords,
)

#: Half a million records may be queued: a busy cluster needs its time for them.
_FLUSH_S = 180.0


def produce(load: Load) -> dict[str, float]:
    """A call for each record."""
    producer, errors = _producer(load)
    send, poll, topic = producer.produce, producer.poll, load.topic
    values, keyed = load.values(), load.keyed_chunks() if load.is_keyed else []
    count = 0
    watch = Stopwatch(load)
    while not watch.is_over():
        if keyed:
            for key, value in keyed[count // len(values) % len(keyed)]:
                while True:
                    try:
                        send(topic, value, key)
                        break
                    except BufferError:
                        poll(0.01)
        else:
            for value in values:
                while True:
                    try:
                        send(topic, value)
                        break
                    except BufferError:
                        poll(0.01)
        count += len(values)
    return _finish(producer, errors, watch, count)


def produce_batch(load: Load) -> dict[str, float]:
    """A call for each thousand records."""
    producer, errors = _producer(load)
    values = load.values()
    chunks: list[list[dict[str, Any]]] = (
        [[{"key": key, "value": value} for key, value in chunk] for chunk in load.keyed_chunks()]
        if load.is_keyed
        else [[{"value": value} for value in values]]
    )
    count = number = 0
    watch = Stopwatch(load)
    while not watch.is_over():
        left = chunks[number % len(chunks)]
        number += 1
        while left:
            queued = producer.produce_batch(load.topic, left)
            count += queued
            if queued == len(left):
                break
            # Those that found no room are marked in place.
            left = [each for each in left if each.pop("_error", None) is not None]
            producer.poll(0.01)
    return _finish(producer, errors, watch, count)


def consume(load: Load) -> dict[str, float]:
    """A call for each ten thousand records."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    while count < load.record_count and not watch.is_over():
        # No more than there are, because it waits until it has so many.
        messages = consumer.consume(min(POLLED_COUNT_MAX, load.record_count - count), WAIT_S)
        if not messages:
            raise TooFewRecords(count)
        for message in messages:
            size_bytes += len(message.value())
        count += len(messages)
    return watch.result(count)


def poll(load: Load) -> dict[str, float]:
    """A call for each record."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    poll_one = consumer.poll
    while count < load.record_count and not watch.is_over():
        for _ in range(min(1_000, load.record_count - count)):
            message = poll_one(WAIT_S)
            if message is None:
                raise TooFewRecords(count)
            size_bytes += len(message.value())
            count += 1
    return watch.result(count)


def _producer(load: Load) -> tuple[Any, list[object]]:
    from confluent_kafka import Producer

    errors: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            errors.append(error)

    tuned = {"batch.size": TUNED_BATCH_BYTES, "linger.ms": TUNED_LINGER_MS} if load.is_tuned else {}
    producer = Producer(
        {
            "bootstrap.servers": load.bootstrap,
            "acks": load.acks,
            "enable.idempotence": load.is_idempotent,
            "queue.buffering.max.messages": 500_000,
            "delivery.report.only.error": True,
            "on_delivery": on_delivery,
            **tuned,
        }
    )
    producer.list_topics(load.topic, WAIT_S)
    return producer, errors


def _finish(producer: Any, errors: list[object], watch: Stopwatch, count: int) -> dict[str, float]:
    left = producer.flush(_FLUSH_S)
    result = watch.result(count)
    if left or errors:
        raise RuntimeError(f"{left} records were not delivered, errors: {errors[:3]}")
    return result


def _consumer(load: Load) -> Any:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": load.bootstrap,
            # Required, and without use where partitions are assigned and nothing is committed.
            "group.id": "bench",
            "enable.auto.commit": False,
        }
    )
    consumer.list_topics(load.topic, WAIT_S)
    return consumer


def _assign(consumer: Any, load: Load) -> None:
    from confluent_kafka import TopicPartition

    consumer.assign([TopicPartition(load.topic, index, 0) for index in range(load.partition_count)])


JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    "confluent-produce": produce,
    "confluent-produce-batch": produce_batch,
    "confluent-consume": consume,
    "confluent-poll": poll,
}
