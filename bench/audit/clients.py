"""What audit and trace cost from end to end: the same records with and without, in turns.

The brokers' audit is compared with librdkafka as the producer and the consumer, on two brokers.
What our own client adds (ids, traces of none, of one in a hundred and of all records) is compared
on one broker. Each run is a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from bench import job_process
from bench.audit.run import Run
from bench.audit.sizes import PARTITION_COUNT, RECORD_SIZE_BYTES
from bench.broker.servers import Server
from bench.rounds import alternate
from bench.table import Row

_MODULE = "bench.audit.clients"
_FLUSH_TIMEOUT_S = 300.0

#: By what a row is called, the settings of our producer and consumer.
_SWITCHES: dict[str, dict[str, object]] = {
    "ids": {"audit.ids.enable": True},
    "trace, 0 %": {"trace.enable": True, "trace.sample": 0.0},
    "trace, 1 %": {"trace.enable": True, "trace.sample": 0.01},
    "trace, 100 %": {"trace.enable": True, "trace.sample": 1.0},
}


def measure(run: Run) -> None:
    with run.broker(audit_enable="true") as audited, run.broker(audit_enable="false") as plain:
        for job in ("stock-produce", "stock-consume"):
            run.attempt(f"{job}, audit", partial(_compare_brokers, run, audited, plain, job))
    with run.broker() as broker:
        for name, switch in _SWITCHES.items():
            for job in ("produce", "consume"):
                run.attempt(f"{job}, {name}", partial(_compare, run, broker, job, name, switch))


def _compare_brokers(run: Run, audited: Server, plain: Server, job: str) -> None:
    count = run.sizes.record_count
    with ExitStack() as stack:
        topics = {
            server: stack.enter_context(server.topic(run.name("topic"), PARTITION_COUNT))
            for server in (audited, plain)
        }
        for server, topic in topics.items():
            run_job("stock-produce", server, topic, count, {})

        def rate(server: Server) -> float:
            return run_job(job, server, topics[server], count, {})

        rates = alternate(lambda: rate(audited), lambda: rate(plain), run.sizes.rounds)
    what = "Produce" if job == "stock-produce" else "Consume"
    row = Row.compared(f"{what} with librdkafka, audit on", "records/s", rates, "off")
    run.results.rows.append(row)


def _compare(run: Run, broker: Server, job: str, name: str, switch: Mapping[str, object]) -> None:
    count = run.sizes.record_count
    # A consumer has no ids to write; what it traces are records that a producer has chosen.
    chosen = switch if job == "produce" else {k: v for k, v in switch.items() if "trace" in k}
    with ExitStack() as stack:
        ours = stack.enter_context(broker.topic(run.name("topic"), PARTITION_COUNT))
        peers = stack.enter_context(broker.topic(run.name("topic"), PARTITION_COUNT))
        run_job("produce", broker, ours, count, switch)
        run_job("produce", broker, peers, count, {})
        rates = alternate(
            lambda: run_job(job, broker, ours, count, chosen),
            lambda: run_job(job, broker, peers, count, {}),
            run.sizes.rounds,
        )
    what = f"{job.capitalize()} with Headwater's client, {name}"
    run.results.rows.append(Row.compared(what, "records/s", rates, "without"))


def run_job(
    job: str, broker: Server, topic: str, record_count: int, settings: Mapping[str, object]
) -> float:
    """Records a second of such a client, in a process of its own."""
    found: float = job_process.run_job(
        _MODULE,
        job,
        bootstrap=broker.bootstrap,
        topic=topic,
        record_count=record_count,
        settings=dict(settings),
    )
    return found


def produce(bootstrap: str, topic: str, record_count: int, settings: dict[str, Any]) -> float:
    from headwater import Producer

    payload = b"x" * RECORD_SIZE_BYTES
    with Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings}) as producer:
        begun_s = time.perf_counter()
        for number in range(record_count):
            producer.send(topic, payload, partition=number % PARTITION_COUNT)
        producer.flush()
        return record_count / (time.perf_counter() - begun_s)


def consume(bootstrap: str, topic: str, record_count: int, settings: dict[str, Any]) -> float:
    from headwater import Consumer
    from headwater.base.ids import TopicPartition

    seen = 0
    with Consumer({"bootstrap.servers": bootstrap, **settings}) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITION_COUNT)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        begun_s = time.perf_counter()
        while seen < record_count:
            seen += len(consumer.poll(1.0))
        return seen / (time.perf_counter() - begun_s)


def produce_with_librdkafka(
    bootstrap: str, topic: str, record_count: int, settings: dict[str, Any]
) -> float:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    payload = b"x" * RECORD_SIZE_BYTES
    begun_s = time.perf_counter()
    for number in range(record_count):
        while True:
            try:
                producer.produce(topic, payload, partition=number % PARTITION_COUNT)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(_FLUSH_TIMEOUT_S):
        raise RuntimeError(f"{left} records were not acknowledged")
    return record_count / (time.perf_counter() - begun_s)


def consume_with_librdkafka(
    bootstrap: str, topic: str, record_count: int, settings: dict[str, Any]
) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **settings})
    consumer.assign(
        [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITION_COUNT)]
    )
    seen, begun_s = 0, time.perf_counter()
    while seen < record_count:
        seen += sum(record.error() is None for record in consumer.consume(10_000, 0.1))
    rate = seen / (time.perf_counter() - begun_s)
    consumer.close()
    return rate


JOBS: dict[str, Callable[..., float]] = {
    "produce": produce,
    "consume": consume,
    "stock-produce": produce_with_librdkafka,
    "stock-consume": consume_with_librdkafka,
}

if __name__ == "__main__":
    job_process.answer(JOBS)
