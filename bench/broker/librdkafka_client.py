"""librdkafka, through confluent-kafka, as a load: a process of its own for each run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

from bench import job_process
from bench.job_process import TIMEOUT_S, finish_job

_NANOSECONDS = 1_000_000_000
_CONSUME_COUNT = 10_000


def start_job(job: str, **arguments: object) -> subprocess.Popen[bytes]:
    """Start a job; `finish_job` waits for it."""
    return job_process.start_job(__name__, job, **arguments)


def run_job(job: str, **arguments: object) -> Any:
    return finish_job(start_job(job, **arguments))


def produce(
    bootstrap: str, topic: str, record_size_bytes: int, record_count: int, settings: dict[str, Any]
) -> float:
    """Seconds until every record is acknowledged; librdkafka spreads them over the partitions."""
    from confluent_kafka import Producer

    errors: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "queue.buffering.max.messages": 500_000,
            # Otherwise Python is called for each record, which is the client's own limit.
            "delivery.report.only.error": True,
            "on_delivery": on_delivery,
            **settings,
        }
    )
    producer.list_topics(topic, 30)
    payload = b"x" * record_size_bytes
    send, poll = producer.produce, producer.poll
    start = time.perf_counter()
    for _ in range(record_count):
        while True:
            try:
                send(topic, payload)
                break
            except BufferError:
                poll(0.01)
    left = producer.flush(TIMEOUT_S)
    seconds = time.perf_counter() - start
    if left or errors:
        raise RuntimeError(f"{left} records were not delivered, errors: {errors[:3]}")
    return seconds


def consume(bootstrap: str, topic: str, partition_count: int, record_count: int) -> float:
    """Seconds until all records of the topic have come."""
    consumer = _assigned_consumer(bootstrap, topic, partition_count)
    count = 0
    start = time.perf_counter()
    while count < record_count:
        # No more than there are, because it waits until it has so many.
        messages = consumer.consume(min(_CONSUME_COUNT, record_count - count), 30.0)
        if not messages:
            raise RuntimeError(f"only {count} records came")
        count += sum(message.error() is None for message in messages)
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


def send_at_rate(
    bootstrap: str, topic: str, record_size_bytes: int, record_count: int, rate_per_s: float
) -> int:
    """Send records evenly in time, each with the moment at which it was sent."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0})
    producer.list_topics(topic, 30)
    padding = b"x" * (record_size_bytes - 8)
    step_ns = _NANOSECONDS / rate_per_s
    start_ns = time.monotonic_ns()
    for number in range(record_count):
        wait_ns = start_ns + number * step_ns - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / _NANOSECONDS)
        producer.produce(topic, time.monotonic_ns().to_bytes(8, "big") + padding)
        producer.poll(0)
    return int(producer.flush(30))


def receive_latencies(bootstrap: str, topic: str, record_count: int) -> list[float]:
    """For each record of the topic's one partition, the milliseconds it took to come here."""
    consumer = _assigned_consumer(bootstrap, topic, 1)
    latencies_ms: list[float] = []
    while len(latencies_ms) < record_count:
        message = consumer.poll(30.0)
        if message is None:
            raise RuntimeError(f"only {len(latencies_ms)} records came")
        if message.error() is None:
            # The clock is one for all processes of the machine.
            sent_ns = int.from_bytes(message.value()[:8], "big")
            latencies_ms.append((time.monotonic_ns() - sent_ns) / 1e6)
    consumer.close()
    return latencies_ms


def first_records(bootstrap: str, topic: str, group_ids: list[str]) -> list[float]:
    """For a new consumer of each group, the milliseconds from first poll to first record."""
    from confluent_kafka import Consumer

    latencies_ms: list[float] = []
    for group_id in group_ids:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        # It connects as soon as it is made; joining starts with `subscribe`, so the clock does too.
        start = time.perf_counter()
        consumer.subscribe([topic])
        message = consumer.poll(30.0)
        seconds = time.perf_counter() - start
        if message is None or message.error() is not None:
            raise RuntimeError(f"no record came, but {message and message.error()}")
        latencies_ms.append(1000 * seconds)
        consumer.close()
    return latencies_ms


def transact(
    bootstrap: str,
    topic: str,
    transactional_id: str,
    transaction_count: int,
    record_count: int,
    record_size_bytes: int,
) -> float:
    """Seconds for so many transactions, one after the other, with so many records in each."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "delivery.report.only.error": True,
            # Records are not held back: the commit that follows waits for them.
            "linger.ms": 0,
        }
    )
    producer.init_transactions(60)
    payload = b"x" * record_size_bytes
    start = 0.0
    # One more, first, in which connections are made and partitions are found.
    for number in range(transaction_count + 1):
        if number == 1:
            start = time.perf_counter()
        producer.begin_transaction()
        for _ in range(record_count):
            producer.produce(topic, payload)
        producer.commit_transaction(60)
    return time.perf_counter() - start


def _assigned_consumer(bootstrap: str, topic: str, partition_count: int) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # Required, and without use where partitions are assigned and nothing is committed.
            "group.id": "bench",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partition_count)])
    return consumer


JOBS: dict[str, Callable[..., object]] = {
    "produce": produce,
    "consume": consume,
    "send_at_rate": send_at_rate,
    "receive_latencies": receive_latencies,
    "first_records": first_records,
    "transact": transact,
}


if __name__ == "__main__":
    job_process.answer(JOBS)
