"""The three measurements of `headwater perf`, on the client of this package.

They run against any Kafka-compatible cluster. A topic that is not there is created first. Values
are random letters, so that compression finds something to do, as in Kafka's own tools.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Sequence
from time import perf_counter
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.perf_pace import Pace
from headwater.cli.perf_report import Latencies, PerfResult, progress_bar
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime, require_all
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.plain_fetcher import PlainFetcher
from headwater.client.plain_producer import Delivery, PlainProducer
from headwater.wire.records import Compression

_VALUES_DIFFERENT: Final = 500
_LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: In front of each value whose way is timed: the run, and the moment at which it was due.
_STAMP: Final = struct.Struct(">Qd")
STAMP_SIZE: Final = _STAMP.size


class ProduceLoad(NamedTuple):
    """What is sent, and how."""

    topic: str
    record_count: int
    record_size: int
    records_per_second: float | None
    acks: int
    compression: Compression
    batch_size_bytes: int
    linger_ms: float
    partition_count: int


async def prepare_topic(connection: ClusterConnection, topic: str, partition_count: int) -> None:
    """See to it that the topic exists."""
    try:
        require_all(
            await AdminOperations(connection).create_topics(
                [NewTopic(topic, partition_count=partition_count)]
            )
        )
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    await connection.refresh([topic])


async def measure_produce(
    connection: ClusterConnection, load: ProduceLoad, *, show_bar: bool
) -> PerfResult:
    """Send as fast as allowed until all is acknowledged."""
    await prepare_topic(connection, load.topic, load.partition_count)
    latencies = Latencies()

    def on_delivery(delivery: Delivery) -> None:
        if delivery.error is None:
            latencies.add(delivery.ended_s - delivery.opened_s, len(delivery.records))

    producer = PlainProducer(
        connection,
        acks=load.acks,
        compression=load.compression,
        batch_size_bytes=load.batch_size_bytes,
        linger_ms=load.linger_ms,
        on_delivery=on_delivery,
    )
    values = random_values(load.record_size, _VALUES_DIFFERENT)
    loop = asyncio.get_running_loop()
    async with (
        producer,
        progress_bar(
            "producing", load.record_count, lambda: producer.delivered_count, is_shown=show_bar
        ),
    ):
        started_s = loop.time()
        pace = Pace(load.records_per_second)
        for number in range(load.record_count):
            if load.records_per_second is not None:
                await pace.next()
            await producer.send(load.topic, values[number % len(values)])
        await producer.flush()
        elapsed_s = loop.time() - started_s
    return PerfResult(
        f"Produced to {load.topic}",
        producer.delivered_count,
        producer.delivered_count * load.record_size,
        elapsed_s,
        [("batch to answer", latencies)],
    )


async def measure_consume(
    connection: ClusterConnection,
    topic: str,
    record_count: int | None,
    *,
    from_latest: bool,
    quiet_s: float,
    show_bar: bool,
) -> PerfResult:
    """Read all partitions until enough came, or until nothing more comes."""
    offsets = await _offsets(
        connection, topic, OffsetTime.LATEST if from_latest else OffsetTime.EARLIEST
    )
    loop = asyncio.get_running_loop()
    count = size_bytes = 0
    first_s = last_s = started_s = loop.time()
    async with (
        PlainFetcher(connection) as fetcher,
        progress_bar("consuming", record_count, lambda: count, is_shown=show_bar),
    ):
        fetcher.assign(offsets)
        while record_count is None or count < record_count:
            fetched = await fetcher.fetch(timeout_s=quiet_s)
            if not fetched:
                break
            if not count:
                first_s = loop.time()
            for partition in fetched:
                for batch in partition.batches():
                    count += len(batch.records)
                    size_bytes += sum(
                        len(record.value or b"") + len(record.key or b"")
                        for record in batch.records
                    )
            last_s = loop.time()
    remarks = [f"The first records came after {(first_s - started_s) * 1000:,.1f} ms."]
    if record_count is not None and count < record_count:
        remarks.append(f"Only {count:,} of {record_count:,} records came.")
    return PerfResult(
        f"Consumed from {topic}", count, size_bytes, last_s - started_s, remarks=remarks
    )


async def measure_latency(
    producing: ClusterConnection, consuming: ClusterConnection, load: ProduceLoad, *, show_bar: bool
) -> PerfResult:
    """Send at a steady pace, and time each record's way to the answer and to a consumer."""
    await prepare_topic(producing, load.topic, load.partition_count)
    offsets = await _offsets(consuming, load.topic, OffsetTime.LATEST)
    to_answer, to_consumer = Latencies(), Latencies()
    run_id = random.getrandbits(63)
    received = 0
    loop = asyncio.get_running_loop()

    def on_delivery(delivery: Delivery) -> None:
        for record in delivery.records if delivery.error is None else ():
            _, due_s = _STAMP.unpack_from(record.value or bytes(STAMP_SIZE))
            to_answer.add(perf_counter() - due_s)

    async def receive(fetcher: PlainFetcher) -> None:
        nonlocal received
        while received < load.record_count:
            for partition in await fetcher.fetch():
                now_s = perf_counter()
                for record in partition.records():
                    if record.value is None or len(record.value) < STAMP_SIZE:
                        continue
                    found_id, due_s = _STAMP.unpack_from(record.value)
                    if found_id == run_id:
                        to_consumer.add(now_s - due_s)
                        received += 1

    async with PlainFetcher(consuming) as fetcher:
        fetcher.assign(offsets)
        receiving = loop.create_task(receive(fetcher))
        producer = PlainProducer(producing, acks=load.acks, linger_ms=0, on_delivery=on_delivery)
        filling = random_values(max(load.record_size - STAMP_SIZE, 0), 1)[0]
        started_s = loop.time()
        try:
            async with (
                producer,
                progress_bar("measuring", load.record_count, lambda: received, is_shown=show_bar),
            ):
                pace = Pace(load.records_per_second)
                for _ in range(load.record_count):
                    due_s = await pace.next()
                    await producer.send(load.topic, _STAMP.pack(run_id, due_s) + filling)
                await producer.flush()
                async with asyncio.timeout(consuming.timeout_s):
                    await receiving
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Only {received:,} of {load.record_count:,} records came back in time.",
            ) from None
        finally:
            receiving.cancel()
        elapsed_s = loop.time() - started_s
    return PerfResult(
        f"Through {load.topic} and back",
        received,
        received * max(load.record_size, STAMP_SIZE),
        elapsed_s,
        [("due to answered", to_answer), ("due to consumed", to_consumer)],
    )


def random_values(size: int, count: int) -> list[bytes]:
    generator = random.Random(size)
    return [bytes(generator.choices(_LETTERS, k=size)) for _ in range(count)]


async def _offsets(
    connection: ClusterConnection, topic: str, time: OffsetTime
) -> dict[TopicPartition, int]:
    info = require_all(await AdminOperations(connection).describe_topics([topic]))[topic]
    partitions: Sequence[TopicPartition] = [
        TopicPartition(topic, partition.partition) for partition in info.partitions
    ]
    found = require_all(
        await AdminOperations(connection).list_offsets(dict.fromkeys(partitions, time))
    )
    return {partition: listed.offset for partition, listed in found.items()}
