"""Producing and consuming as fast as the clients can, and what each gigabyte costs the broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from bench.broker import librdkafka_client
from bench.broker.client_run import ClientRun, ServerRun, observe
from bench.broker.java_clients import JavaClients
from bench.broker.request_load import RequestLoad, frames_for_all, records_per_batch
from bench.broker.results import CPU, THROUGHPUT, Row, full_spread
from bench.broker.run import Run, settle_disk, take_turns
from bench.broker.servers import Server
from bench.broker.sizes import MEGABYTE, RECORD_SIZES_BYTES, size_text
from bench.rounds import Comparison

SECTION = "Throughput"
CPU_SECTION = "Broker CPU"
PARTITION_COUNT = 6
#: The slower side's run takes at most so many times as long as a run should.
_SLOWER_SIDE_FACTOR = 2.0
_CLIENT_NAMES = {"java": "Java", "librdkafka": "librdkafka"}
#: acks, whether the disk is waited for, and how a row says that.
_MODES = (
    ("1", False, "acks=1"),
    ("all", False, "acks=all, no fsync"),
    ("all", True, "acks=all, on disk"),
)

_topic_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    if "java" in run.clients:
        run.say("Java's clients warm up")
        _warm_java_up(run, servers)
    for acks, durable, name in _MODES:
        for server in servers:
            server.set_durable(durable)
        for client in run.clients:
            for size_bytes in _sizes(run, client, acks):
                what = f"Produce {size_text(size_bytes)}, {name}, {_CLIENT_NAMES[client]}"
                work = partial(_produce_row, run, servers, client, acks, durable, size_bytes)
                run.attempt(what, partial(work, what))
    for server in servers:
        server.set_durable(False)
    for size_bytes in RECORD_SIZES_BYTES:
        what = f"Consume {size_text(size_bytes)}"
        run.attempt(what, partial(_consume_rows, run, servers, size_bytes))


def _warm_java_up(run: Run, servers: tuple[Server, Server]) -> None:
    send = partial(_produce_with_java, run.java)
    for size_bytes in RECORD_SIZES_BYTES:
        count = run.sizes.run_bytes_max // 10 // size_bytes
        for server in servers:
            _produce(
                server,
                send=send,
                acks="1",
                durable=False,
                size_bytes=size_bytes,
                record_count=count,
            )


def _sizes(run: Run, client: str, acks: str) -> tuple[int, ...]:
    """What is produced: everything with Java and acks=1, the rest as the run has time for it."""
    sizes: tuple[int, ...] = RECORD_SIZES_BYTES
    if client == "librdkafka":
        sizes = run.sizes.librdkafka_sizes_bytes
    if acks == "all":
        allowed = run.sizes.acks_all_sizes_bytes[client]
        return tuple(size for size in sizes if size in allowed)
    return sizes


def _produce_row(
    run: Run,
    servers: tuple[Server, Server],
    client: str,
    acks: str,
    durable: bool,
    size_bytes: int,
    what: str,
) -> None:
    sizes = run.sizes
    send = partial(_produce_with_java, run.java) if client == "java" else _produce_with_librdkafka
    produce = partial(_produce, send=send, acks=acks, durable=durable, size_bytes=size_bytes)
    # Both sides get the same number of records. How fast they are is tried out first, with little
    # where each batch waits for the disk.
    lowest = max(200, 2 * MEGABYTE // size_bytes)
    highest = max(lowest, sizes.run_bytes_max // size_bytes)
    try_count = lowest if durable else max(lowest, highest // 10)
    rates = [produce(server, record_count=try_count).records_per_s for server in servers]
    wanted = sizes.run_s * min(max(rates), _SLOWER_SIDE_FACTOR * min(rates))
    count = max(lowest, min(int(wanted), highest))
    rounds = sizes.java_rounds if client == "java" else sizes.librdkafka_rounds
    results = take_turns(servers, rounds, lambda server: produce(server, record_count=count))
    _add_rows(run, what, results)


def _produce(
    server: Server,
    *,
    send: Callable[[Server, str, str, int, int], ClientRun],
    acks: str,
    durable: bool,
    size_bytes: int,
    record_count: int,
) -> ServerRun:
    configs = server.durable_topic_configs if durable else {}
    with server.topic(f"produce-{next(_topic_numbers)}", PARTITION_COUNT, configs) as topic:
        result = observe(server, lambda: send(server, topic, acks, size_bytes, record_count))
        with server.connect() as raw:
            stored = raw.record_count(topic, PARTITION_COUNT)
    if stored != record_count:
        raise RuntimeError(f"{server.name} has {stored} records of {record_count}")
    return result


def _produce_with_java(
    java: JavaClients, server: Server, topic: str, acks: str, size_bytes: int, record_count: int
) -> ClientRun:
    return java.produce(
        server,
        topic,
        record_size_bytes=size_bytes,
        record_count=record_count,
        properties={"acks": acks},
    )


def _produce_with_librdkafka(
    server: Server, topic: str, acks: str, size_bytes: int, record_count: int
) -> ClientRun:
    seconds = librdkafka_client.run_job(
        "produce",
        bootstrap=server.bootstrap,
        topic=topic,
        record_size_bytes=size_bytes,
        record_count=record_count,
        settings={"acks": acks},
    )
    return ClientRun(record_count, record_count * size_bytes, seconds)


def _consume_rows(run: Run, servers: tuple[Server, Server], size_bytes: int) -> None:
    """All clients read the same topics, which lie in the page cache."""
    topic = f"consume-{size_bytes}"
    frames = frames_for_all(topic, PARTITION_COUNT, size_bytes)
    records_per_frame = records_per_batch(size_bytes)
    frame_count = max(1, run.sizes.consumed_bytes // (size_bytes * records_per_frame))
    for server in servers:
        with server.connect() as client:
            client.create_topic(topic, PARTITION_COUNT)
        with RequestLoad(server.port, frames, connection_count=1, in_flight=5) as load:
            load.run(600.0, frame_count)
    with servers[0].connect() as client:
        record_count = client.record_count(topic, PARTITION_COUNT)
    for client_name in run.clients:
        if client_name == "librdkafka" and size_bytes not in run.sizes.librdkafka_sizes_bytes:
            continue
        what = f"Consume {size_text(size_bytes)}, {_CLIENT_NAMES[client_name]}"
        consume = _consumer(run, client_name, topic, record_count, size_bytes)
        run.attempt(what, partial(_consume_row, run, servers, client_name, consume, what))
    for server in servers:
        with server.connect() as client:
            client.delete_topic(topic)


def _consume_row(
    run: Run,
    servers: tuple[Server, Server],
    client: str,
    consume: Callable[[Server], ClientRun],
    what: str,
) -> None:
    rounds = run.sizes.java_rounds if client == "java" else run.sizes.librdkafka_rounds
    for server in servers:
        consume(server)
    settle_disk()
    measured = take_turns(servers, rounds, lambda server: observe(server, lambda: consume(server)))
    _add_rows(run, what, measured)


def _consumer(
    run: Run,
    client: str,
    topic: str,
    record_count: int,
    size_bytes: int,
) -> Callable[[Server], ClientRun]:
    if client == "java":
        return lambda server: run.java.consume(server, topic, record_count)

    def consume(server: Server) -> ClientRun:
        seconds = librdkafka_client.run_job(
            "consume",
            bootstrap=server.bootstrap,
            topic=topic,
            partition_count=PARTITION_COUNT,
            record_count=record_count,
        )
        return ClientRun(record_count, record_count * size_bytes, seconds)

    return consume


def _add_rows(run: Run, what: str, measured: tuple[list[ServerRun], list[ServerRun]]) -> None:
    ours, peer = measured
    cores = (
        full_spread([one.cores for one in ours]).median,
        full_spread([one.cores for one in peer]).median,
    )
    speeds = Comparison(
        [one.megabytes_per_s for one in ours], [one.megabytes_per_s for one in peer]
    )
    costs = Comparison(
        [one.cpu_s_per_gigabyte for one in ours], [one.cpu_s_per_gigabyte for one in peer]
    )
    run.results.rows.append(Row(SECTION, what, "MB/s", speeds, THROUGHPUT, cores))
    run.results.rows.append(Row(CPU_SECTION, what, "CPU s/GB", costs, CPU))
