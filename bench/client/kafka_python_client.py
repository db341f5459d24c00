"""kafka-python under load."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
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


def produce(load: Load) -> dict[str, float]:
    tuned = {"batch_size": TUNED_BATCH_BYTES, "linger_ms": TUNED_LINGER_MS} if load.is_tuned else {}
    producer = _package().KafkaProducer(
        bootstrap_servers=load.bootstrap,
        acks=load.acks if load.acks == "all" else int(load.acks),
        enable_idempotence=load.is_idempotent,
        **tuned,
    )
    producer.partitions_for(load.topic)
    send, topic = producer.send, load.topic
    values, keyed = load.values(), load.keyed_chunks() if load.is_keyed else []
    count = 0
    future: Any = None
    watch = Stopwatch(load)
    while not watch.is_over():
        if keyed:
            for key, value in keyed[count // len(values) % len(keyed)]:
                future = send(topic, value, key)
        else:
            for value in values:
                future = send(topic, value)
        count += len(values)
    producer.flush(WAIT_S)
    result = watch.result(count)
    future.get(0)
    producer.close()
    return result


def poll(load: Load) -> dict[str, float]:
    """Many records a call."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    while count < load.record_count and not watch.is_over():
        polled = consumer.poll(timeout_ms=int(WAIT_S * 1000), max_records=POLLED_COUNT_MAX)
        if not polled:
            raise TooFewRecords(count)
        for records in polled.values():
            for record in records:
                size_bytes += len(record.value)
            count += len(records)
    return watch.result(count)


def iterate(load: Load) -> dict[str, float]:
    """One record after the other."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    for record in consumer:
        size_bytes += len(record.value)
        count += 1
        if count == load.record_count or (count % 1_000 == 0 and watch.is_over()):
            return watch.result(count)
    raise TooFewRecords(count)


def _package() -> Any:
    return import_module("kafka")


def _consumer(load: Load) -> Any:
    consumer = _package().KafkaConsumer(
        bootstrap_servers=load.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT_S * 1000),
    )
    consumer.partitions_for_topic(load.topic)
    return consumer


def _assign(consumer: Any, load: Load) -> None:
    kind = _package().TopicPartition
    consumer.assign([kind(load.topic, index) for index in range(load.partition_count)])


JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    "kafka-python-produce": produce,
    "kafka-python-poll": poll,
    "kafka-python-iterate": iterate,
}
