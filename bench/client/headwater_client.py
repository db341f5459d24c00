"""Our own client under load: with threads, on an event loop, and with Arrow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.client.load import (
    CHUNK_COUNT,
    POLLED_COUNT_MAX,
    TUNED_BATCH_BYTES,
    TUNED_LINGER_MS,
    WAIT_S,
    Load,
    Stopwatch,
    TooFewRecords,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater import Consumer


def produce(load: Load) -> dict[str, float]:
    from headwater import Producer

    producer = Producer(_producer_settings(load))
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
    future.result(0)
    producer.close()
    return result


def produce_on_loop(load: Load) -> dict[str, float]:
    return asyncio.run(_produce_on_loop(load))


def produce_arrow(load: Load) -> dict[str, float]:
    from headwater import Producer

    producer = Producer(_producer_settings(load))
    producer.partitions_for(load.topic)
    batches = _arrow_batches(load)
    count = 0
    sent: Any = None
    watch = Stopwatch(load)
    while not watch.is_over():
        for batch in batches:
            sent = producer.send_arrow(load.topic, batch)
            count += batch.num_rows
    producer.flush(WAIT_S)
    result = watch.result(count)
    sent.result(0)
    producer.close()
    return result


def poll(load: Load) -> dict[str, float]:
    """Many records a call."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    consumer.assign(_partitions(load))
    while count < load.record_count and not watch.is_over():
        records = consumer.poll(WAIT_S, POLLED_COUNT_MAX)
        if not records:
            raise TooFewRecords(count)
        for record in records:
            size_bytes += len(record.value)
        count += len(records)
    result = watch.result(count)
    consumer.close()
    return result


def iterate(load: Load) -> dict[str, float]:
    """One record after the other."""
    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    consumer.assign(_partitions(load))
    for record in consumer:
        size_bytes += len(record.value)
        count += 1
        if count == load.record_count or (count % 1_000 == 0 and watch.is_over()):
            break
    result = watch.result(count)
    consumer.close()
    return result


def poll_arrow(load: Load) -> dict[str, float]:
    """Keys and values are copied out of what was received."""
    return _poll_arrow(load, None)


def poll_views(load: Load) -> dict[str, float]:
    """Keys and values stay where they were received."""
    import pyarrow as pa

    return _poll_arrow(
        load,
        pa.schema(
            [
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.int64()),
                ("key", pa.binary_view()),
                ("value", pa.binary_view()),
            ]
        ),
    )


def _poll_arrow(load: Load, schema: pa.Schema | None) -> dict[str, float]:
    # It takes a moment to load, and whoever works with its batches has loaded it.
    import pyarrow.compute  # noqa: F401

    consumer = _consumer(load)
    count = size_bytes = 0
    watch = Stopwatch(load)
    consumer.assign(_partitions(load))
    while count < load.record_count and not watch.is_over():
        batch = consumer.poll_arrow(WAIT_S, 10 * POLLED_COUNT_MAX, schema=schema)
        if not batch.num_rows:
            raise TooFewRecords(count)
        size_bytes += batch.column("value").nbytes
        count += batch.num_rows
    result = watch.result(count)
    consumer.close()
    return result


def poll_on_loop(load: Load) -> dict[str, float]:
    """Many records a call."""
    return asyncio.run(_poll_on_loop(load))


def iterate_on_loop(load: Load) -> dict[str, float]:
    """One record after the other."""
    return asyncio.run(_iterate_on_loop(load))


async def _produce_on_loop(load: Load) -> dict[str, float]:
    from headwater import AsyncProducer

    async with AsyncProducer(_producer_settings(load)) as producer:
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
        await producer.flush(WAIT_S)
        result = watch.result(count)
        await future
        return result


async def _poll_on_loop(load: Load) -> dict[str, float]:
    from headwater import AsyncConsumer

    async with AsyncConsumer(_consumer_settings(load)) as consumer:
        await consumer.partitions_for(load.topic)
        count = size_bytes = 0
        watch = Stopwatch(load)
        await consumer.assign(_partitions(load))
        while count < load.record_count and not watch.is_over():
            records = await consumer.poll(WAIT_S, POLLED_COUNT_MAX)
            if not records:
                raise TooFewRecords(count)
            for record in records:
                size_bytes += len(record.value)
            count += len(records)
        return watch.result(count)


async def _iterate_on_loop(load: Load) -> dict[str, float]:
    from headwater import AsyncConsumer

    async with AsyncConsumer(_consumer_settings(load)) as consumer:
        await consumer.partitions_for(load.topic)
        count = size_bytes = 0
        watch = Stopwatch(load)
        await consumer.assign(_partitions(load))
        async with asyncio.timeout(load.run_s + WAIT_S):
            async for record in consumer:
                size_bytes += len(record.value)
                count += 1
                if count == load.record_count or (count % 1_000 == 0 and watch.is_over()):
                    break
        return watch.result(count)


def _producer_settings(load: Load) -> dict[str, object]:
    settings: dict[str, object] = {
        "bootstrap.servers": load.bootstrap,
        "acks": load.acks,
        "enable.idempotence": load.is_idempotent,
    }
    if load.is_tuned:
        settings |= {"batch.size": TUNED_BATCH_BYTES, "linger.ms": TUNED_LINGER_MS}
    return settings


def _consumer(load: Load) -> Consumer:
    """One that has been in contact, as those of other clients have when they are made."""
    from headwater import Consumer

    consumer = Consumer(_consumer_settings(load))
    consumer.partitions_for(load.topic)
    return consumer


def _consumer_settings(load: Load) -> dict[str, object]:
    return {"bootstrap.servers": load.bootstrap, "auto.offset.reset": "earliest"}


def _partitions(load: Load) -> list[Any]:
    from headwater import TopicPartition

    return [TopicPartition(load.topic, index) for index in range(load.partition_count)]


def _arrow_batches(load: Load) -> list[pa.RecordBatch]:
    """Ten thousand rows each, as someone has them who comes from a table."""
    import pyarrow as pa

    if not load.is_keyed:
        values = load.values() * (POLLED_COUNT_MAX // CHUNK_COUNT)
        return [pa.record_batch({"value": pa.array(values, pa.binary())})]
    pairs = [pair for chunk in load.keyed_chunks() for pair in chunk]
    keys, keyed_values = zip(*pairs, strict=True)
    columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(keyed_values, pa.binary())}
    return [pa.record_batch(columns)]


JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    "headwater-produce": produce,
    "headwater-produce-async": produce_on_loop,
    "headwater-produce-arrow": produce_arrow,
    "headwater-poll": poll,
    "headwater-iterate": iterate,
    "headwater-poll-async": poll_on_loop,
    "headwater-iterate-async": iterate_on_loop,
    "headwater-poll-arrow": poll_arrow,
    "headwater-poll-views": poll_views,
}
