"""How cost grows: with the number of partitions, and with the number of connections.

For each number of partitions, both servers get fresh directories and that many partitions. Then
they take batches for all of them in turn, stop, and start again. Each connection has one request
under way at any time, so that with many of them all are busy.
"""

from __future__ import annotations

import time
from functools import partial

from bench.broker.request_load import RequestLoad, produce_frame
from bench.broker.results import Curve
from bench.broker.run import Run, settle_disk, take_turns
from bench.broker.servers import Server
from bench.broker.sizes import MEGABYTE
from bench.broker.start import start_to_first_ack_s
from bench.broker.warm_up import warm_up

#: Apache Kafka refuses to create many more at once.
_PARTITIONS_PER_TOPIC_MAX = 1_000
_BATCH_RECORD_COUNT = 16
_RECORD_SIZE_BYTES = 1_000


def measure_partitions(run: Run) -> None:
    curves = {
        "create": Curve("Create all partitions", "s", "partitions"),
        "produce": Curve("Produce to all partitions in turn, 16 KB each", "MB/s", "partitions"),
        "stop": Curve("Stop in order", "s", "partitions"),
        "start": Curve("Start to first acknowledged record", "s", "partitions"),
    }
    run.results.curves += curves.values()
    for count in run.sizes.partition_counts:
        what = f"Growth: {count:,} partitions"
        run.attempt(what, partial(_measure_partition_count, run, curves, count))


def _measure_partition_count(run: Run, curves: dict[str, Curve], partition_count: int) -> None:
    with run.pair.made() as servers:
        figures = [_live_with_partitions(run, server, partition_count) for server in servers]
    for name, curve in curves.items():
        curve.add(partition_count, [figures[0][name]], [figures[1][name]])


def _live_with_partitions(run: Run, server: Server, partition_count: int) -> dict[str, float]:
    """One server's life: alone, since its end is measured too."""
    server.start()
    warm_up(server, run.sizes.warm_up_s / 2)
    topics = _topics(partition_count)
    figures = {}
    with server.connect() as client:
        begin_s = time.perf_counter()
        for name, count in topics.items():
            client.create_topic(name, count)
        figures["create"] = time.perf_counter() - begin_s
    frames = [
        produce_frame(name, index, _RECORD_SIZE_BYTES, _BATCH_RECORD_COUNT)
        for name, count in topics.items()
        for index in range(count)
    ]
    with RequestLoad(server.port, frames, connection_count=2, in_flight=5) as load:
        # Each partition once, because the first append to one makes files.
        load.run(600.0, partition_count)
        settle_disk()
        answered = load.run(run.sizes.partition_load_s)
    batch_bytes = _RECORD_SIZE_BYTES * _BATCH_RECORD_COUNT
    figures["produce"] = answered.answer_count * batch_bytes / MEGABYTE / answered.seconds
    settle_disk()
    begin_s = time.perf_counter()
    server.stop()
    figures["stop"] = time.perf_counter() - begin_s
    settle_disk()
    figures["start"] = start_to_first_ack_s(server, next(iter(topics)))
    server.kill()
    run.say("  " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
    return figures


def _topics(partition_count: int) -> dict[str, int]:
    """Names, of one length, and sizes of the topics that have so many partitions together."""
    return {
        f"growth-{first:05}": min(_PARTITIONS_PER_TOPIC_MAX, partition_count - first)
        for first in range(0, partition_count, _PARTITIONS_PER_TOPIC_MAX)
    }


def measure_connections(run: Run, servers: tuple[Server, Server]) -> None:
    curve = Curve("Produce one record of 1 KB per request", "requests/s", "connections")
    run.results.curves.append(curve)
    for count in run.sizes.connection_counts:
        what = f"Growth: {count:,} connections"
        run.attempt(what, partial(_measure_connection_count, run, servers, curve, count))


def _measure_connection_count(
    run: Run, servers: tuple[Server, Server], curve: Curve, connection_count: int
) -> None:
    def rate(server: Server) -> float:
        with server.topic(f"connections-{connection_count}", 1) as topic:
            frame = produce_frame(topic, 0, _RECORD_SIZE_BYTES, 1)
            with RequestLoad(
                server.port, [frame], connection_count=connection_count, in_flight=1
            ) as load:
                load.run(run.sizes.connection_load_s / 4)
                count = load.run(run.sizes.connection_load_s)
            return count.answer_count / count.seconds

    ours, peer = take_turns(servers, run.sizes.growth_rounds, rate)
    curve.add(connection_count, ours, peer)
