"""The three measurements of `headwater perf`, on the client of this package.

They run against any Kafka-compatible cluster. A topic that is not there is created first. Values
are random letters, so that compression finds something to do, as in Kafka's own tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from time import perf_counter
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.perf.report import Latencies, PerfResult, progress_bar
from headwater.cli.records.deliveries import Deliveries
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.kafka_errors import UnknownServerError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata

#: Sleeping more often than this would cost more than it brings.
_SLEEP_S_MIN: Final = 0.001
_VALUES_DIFFERENT: Final = 500
#: At full speed one record of so many is timed, since timing all would slow them down.
_TIMED_ONE_OF: Final = 17
_REQUEST_BYTES_MIN: Final = 1 << 20
_POLL_RECORDS: Final = 10_000
_POLL_S: Final = 1.0
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
    acks: str
    compression: str
    batch_size_bytes: int
    linger_ms: int
    partition_count: int


async def prepare_topic(connection: ClusterConnection, topic: str, partition_count: int) -> None:
    """See to it that the topic exists."""
    try:
        await AdminOperations(connection).create_topics(
            [NewTopic(topic, partition_count=partition_count)]
        )
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    await connection.refresh([topic])


async def measure_produce(
    connection: ClusterConnection, bootstrap: str, load: ProduceLoad, *, show_bar: bool
) -> PerfResult:
    """Send as fast as allowed until all is acknowledged."""
    await prepare_topic(connection, load.topic, load.partition_count)
    latencies, timed = Latencies(), Deliveries()
    values = random_values(load.record_size, _VALUES_DIFFERENT)
    timed_one_of = _TIMED_ONE_OF if load.records_per_second is None else 1

    def timed_from(sent_s: float) -> OnDelivery:
        def note(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            latencies.add(perf_counter() - sent_s)
            timed.note(metadata, error)

        return note

    def about_written() -> int:
        return min(timed.written_count * timed_one_of, load.record_count)

    async with (
        make_producer(bootstrap, load) as producer,
        progress_bar("producing", load.record_count, about_written, is_shown=show_bar),
    ):
        # Finding the topic is no part of the measurement.
        await producer.partitions_for(load.topic)
        started_s = perf_counter()
        pace = Pace(load.records_per_second)
        for number in range(load.record_count):
            if load.records_per_second is not None:
                await pace.next()
            on_delivery = None if number % timed_one_of else timed_from(perf_counter())
            await producer.send(load.topic, values[number % len(values)], on_delivery=on_delivery)
        await producer.flush()
        elapsed_s = perf_counter() - started_s
        failed_count = int((await producer.metrics())["record-error-total"])
    if failed_count:
        # None of those that were timed may be among them.
        raise timed.failure or UnknownServerError(
            f"{failed_count:,} of {load.record_count:,} records were not written."
        )
    return PerfResult(
        f"Produced to {load.topic}",
        load.record_count,
        load.record_count * load.record_size,
        elapsed_s,
        [("sent to answered", latencies)],
    )


async def measure_consume(
    connection: ClusterConnection,
    bootstrap: str,
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
    count = size_bytes = 0
    first_s = last_s = started_s = perf_counter()
    async with (
        _consumer_at(bootstrap, offsets) as consumer,
        progress_bar("consuming", record_count, lambda: count, is_shown=show_bar),
    ):
        while record_count is None or count < record_count:
            left_count = _POLL_RECORDS if record_count is None else record_count - count
            records = await consumer.poll(quiet_s, min(_POLL_RECORDS, left_count))
            if not records:
                break
            if not count:
                first_s = perf_counter()
            count += len(records)
            size_bytes += sum(
                [len(record.value or b"") + len(record.key or b"") for record in records]
            )
            last_s = perf_counter()
    remarks = [f"The first records came after {(first_s - started_s) * 1000:,.1f} ms."]
    if record_count is not None and count < record_count:
        remarks.append(f"Only {count:,} of {record_count:,} records came.")
    return PerfResult(
        f"Consumed from {topic}", count, size_bytes, last_s - started_s, remarks=remarks
    )


async def measure_latency(
    connection: ClusterConnection, bootstrap: str, load: ProduceLoad, *, show_bar: bool
) -> PerfResult:
    """Send at a steady pace, and time each record's way to the answer and to a consumer."""
    await prepare_topic(connection, load.topic, load.partition_count)
    offsets = await _offsets(connection, load.topic, OffsetTime.LATEST)
    to_answer, to_consumer, deliveries = Latencies(), Latencies(), Deliveries()
    run_id = random.getrandbits(63)
    received = 0
    loop = asyncio.get_running_loop()

    def timed_from(due_s: float) -> OnDelivery:
        def note(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            to_answer.add(perf_counter() - due_s)
            deliveries.note(metadata, error)

        return note

    async def receive(consumer: AsyncConsumer) -> None:
        nonlocal received
        while received < load.record_count:
            records = await consumer.poll(_POLL_S, _POLL_RECORDS)
            now_s = perf_counter()
            for record in records:
                if record.value is None or len(record.value) < STAMP_SIZE:
                    continue
                found_id, due_s = _STAMP.unpack_from(record.value)
                if found_id == run_id:
                    to_consumer.add(now_s - due_s)
                    received += 1

    bar = progress_bar("measuring", load.record_count, lambda: received, is_shown=show_bar)
    async with _consumer_at(bootstrap, offsets) as consumer:
        receiving = loop.create_task(receive(consumer))
        filling = random_values(max(load.record_size - STAMP_SIZE, 0), 1)[0]
        started_s = loop.time()
        try:
            async with make_producer(bootstrap, load) as producer, bar:
                pace = Pace(load.records_per_second)
                for _ in range(load.record_count):
                    due_s = await pace.next()
                    value = _STAMP.pack(run_id, due_s) + filling
                    await producer.send(load.topic, value, on_delivery=timed_from(due_s))
                await producer.flush()
                if deliveries.failure is not None:
                    raise deliveries.failure
                async with asyncio.timeout(connection.timeout_s):
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


def make_producer(bootstrap: str, load: ProduceLoad) -> AsyncProducer:
    return AsyncProducer(
        {"acks": load.acks, "compression.type": load.compression},
        bootstrap_servers=bootstrap,
        batch_size=load.batch_size_bytes,
        linger_ms=load.linger_ms,
        max_request_size=max(_REQUEST_BYTES_MIN, 2 * load.record_size),
    )


@contextlib.asynccontextmanager
async def _consumer_at(
    bootstrap: str, offsets: Mapping[TopicPartition, int]
) -> AsyncIterator[AsyncConsumer]:
    """A consumer that reads these partitions from there on."""
    async with AsyncConsumer(
        bootstrap_servers=bootstrap, allow_auto_create_topics=False
    ) as consumer:
        consumer.assign(offsets)
        for partition, offset in offsets.items():
            consumer.seek(partition, offset)
        yield consumer


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


class Pace:
    """A steady pace for sending: so many records a second, however busy the program is."""

    def __init__(self, records_per_second: float | None) -> None:
        self._per_second = records_per_second
        self._started_s = perf_counter()
        self._count = 0

    async def next(self) -> float:
        """Wait until the next record is due, and return when that was, by `perf_counter`."""
        if self._per_second is None:
            return perf_counter()
        due_s = self._started_s + self._count / self._per_second
        self._count += 1
        wait_s = due_s - perf_counter()
        if wait_s > _SLEEP_S_MIN:
            await asyncio.sleep(wait_s)
        return due_s
