"""aiokafka under load."""

from __future__ import annotations

import asyncio
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
    return asyncio.run(_produce(load))


def get_many(load: Load) -> dict[str, float]:
    """Many records a call."""
    return asyncio.run(_get_many(load))


def iterate(load: Load) -> dict[str, float]:
    """One record after the other."""
    return asyncio.run(_iterate(load))


async def _produce(load: Load) -> dict[str, float]:
    tuned: dict[str, int] = (
        {"max_batch_size": TUNED_BATCH_BYTES, "linger_ms": TUNED_LINGER_MS} if load.is_tuned else {}
    )
    producer = _package().AIOKafkaProducer(
        bootstrap_servers=load.bootstrap,
        acks=load.acks if load.acks == "all" else int(load.acks),
        enable_idempotence=load.is_idempotent,
        **tuned,
    )
    await producer.start()
    await producer.partitions_for(load.topic)
    send, topic = producer.send, load.topic
    values, keyed = load.values(), load.keyed_chunks() if load.is_keyed else []
    count = 0
    future: Any = None
    watch = Stopwatch(load)
    while not watch.is_over():
        if keyed:
            for key, value in keyed[count // len(values) % len(keyed)]:
                future = await send(topic, value, key)
        else:
            for value in values:
                future = await send(topic, value)
        count += len(values)
    await producer.flush()
    result = watch.result(count)
    await future
    await producer.stop()
    return result


async def _get_many(load: Load) -> dict[str, float]:
    consumer = await _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    while count < load.record_count and not watch.is_over():
        fetched = await consumer.getmany(
            timeout_ms=int(WAIT_S * 1000), max_records=POLLED_COUNT_MAX
        )
        if not fetched:
            raise TooFewRecords(count)
        for records in fetched.values():
            for record in records:
                size_bytes += len(record.value)
            count += len(records)
    result = watch.result(count)
    await consumer.stop()
    return result


async def _iterate(load: Load) -> dict[str, float]:
    consumer = await _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    _assign(consumer, load)
    async with asyncio.timeout(load.run_s + WAIT_S):
        async for record in consumer:
            size_bytes += len(record.value)
            count += 1
            if count == load.record_count or (count % 1_000 == 0 and watch.is_over()):
                break
    result = watch.result(count)
    await consumer.stop()
    return result


def _package() -> Any:
    return import_module("aiokafka")


async def _consumer(load: Load) -> Any:
    consumer = _package().AIOKafkaConsumer(
        bootstrap_servers=load.bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    return consumer


def _assign(consumer: Any, load: Load) -> None:
    kind = _package().TopicPartition
    consumer.assign([kind(load.topic, index) for index in range(load.partition_count)])


JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    "aiokafka-produce": produce,
    "aiokafka-get-many": get_many,
    "aiokafka-iterate": iterate,
}
