"""Requests a second with one record each: what a request costs, where nothing is shared.

Java's producer sends each record in a request of its own if it may not batch and there is one
partition. The bare load does the same from one thread and spends little on it, so that the server
is what is measured; over one connection, and over several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from bench.broker.client_run import ClientRun, ServerRun, observe
from bench.broker.java_clients import JavaClients
from bench.broker.request_load import RequestLoad, produce_frame
from bench.broker.results import REQUESTS, Row, full_spread
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.rounds import Comparison

SECTION = "One record per request"
RECORD_SIZE_BYTES = 100
IN_FLIGHT = 5
CONNECTION_COUNTS = (1, 8)
#: About what Java's producer brings into such requests.
_JAVA_RATE_PER_S = 10_000
#: No batching: a record goes out as soon as fewer than `IN_FLIGHT` requests are under way.
_JAVA_PROPERTIES = {
    "acks": "1",
    "batch.size": "0",
    "linger.ms": "0",
    "max.in.flight.requests.per.connection": str(IN_FLIGHT),
}

_topic_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    for count in CONNECTION_COUNTS:
        plural = "" if count == 1 else "s"
        what = f"{count} connection{plural}, {IN_FLIGHT} in flight each"
        load = partial(_load, connection_count=count, seconds=run.sizes.request_s)
        run.attempt(what, partial(_add_row, run, servers, what, load))
    if "java" in run.clients:
        what = f"Java, {IN_FLIGHT} in flight"
        record_count = max(500, int(run.sizes.request_s * _JAVA_RATE_PER_S))
        load = partial(_load_with_java, run.java, record_count=record_count)
        run.attempt(what, partial(_add_row, run, servers, what, load))


def _add_row(
    run: Run, servers: tuple[Server, Server], what: str, load: Callable[[Server], ServerRun]
) -> None:
    for server in servers:
        load(server)
    ours, peer = take_turns(servers, run.sizes.request_rounds, load)
    rates = Comparison([one.records_per_s for one in ours], [one.records_per_s for one in peer])
    cores = (
        full_spread([one.cores for one in ours]).median,
        full_spread([one.cores for one in peer]).median,
    )
    run.results.rows.append(Row(SECTION, what, "requests/s", rates, REQUESTS, cores))


def _load(server: Server, *, connection_count: int, seconds: float) -> ServerRun:
    with server.topic(f"requests-{next(_topic_numbers)}", 1) as topic:
        frame = produce_frame(topic, 0, RECORD_SIZE_BYTES, 1)
        with RequestLoad(
            server.port, [frame], connection_count=connection_count, in_flight=IN_FLIGHT
        ) as load:

            def work() -> ClientRun:
                count = load.run(seconds)
                expected = count.total_count + load.probe_count
                with server.connect() as client:
                    stored = client.record_count(topic, 1)
                if stored != expected:
                    raise RuntimeError(f"{server.name} has {stored} records of {expected}")
                size_bytes = count.answer_count * RECORD_SIZE_BYTES
                return ClientRun(count.answer_count, size_bytes, count.seconds)

            return observe(server, work)


def _load_with_java(java: JavaClients, server: Server, *, record_count: int) -> ServerRun:
    with server.topic(f"requests-{next(_topic_numbers)}", 1) as topic:
        return observe(
            server,
            lambda: java.produce(
                server,
                topic,
                record_size_bytes=RECORD_SIZE_BYTES,
                record_count=record_count,
                properties=_JAVA_PROPERTIES,
            ),
        )
