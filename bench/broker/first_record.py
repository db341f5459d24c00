"""How long a new consumer waits for its first record: from its first poll, as a new group.

The topic is there and has records. In that time the client finds the coordinator, joins, syncs,
asks where to begin and fetches. A server may also wait for more members before a new group's first
rebalance, Apache Kafka for 3 s by default; so it is measured both as it comes and without that
wait. The very first group of a fresh server is a row of its own: the topic of offsets is made then.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.broker import librdkafka_client
from bench.broker.request_load import RequestLoad, frames_for_all
from bench.broker.results import FIRST_RECORD, FIRST_RECORD_AT_ONCE, Goal, Row
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.rounds import Comparison

SECTION = "First poll to first record"
_PARTITION_COUNT = 6
_CLIENT_NAMES = {"java": "Java", "librdkafka": "librdkafka"}

_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    """On servers that run, and do not wait for members."""
    for client in run.clients:
        what = f"New group, no wait for members, {_CLIENT_NAMES[client]}"
        count = run.sizes.first_record_count
        work = partial(_add_row, run, servers, client, count, what, FIRST_RECORD_AT_ONCE)
        run.attempt(what, work)


def measure_from_start(run: Run) -> None:
    """On servers as they come, and on fresh ones."""
    with run.pair.made() as servers:
        for server in servers:
            server.wait_for_members()
            server.start()
        for client in run.clients:
            what = f"New group, servers as they come, {_CLIENT_NAMES[client]}"
            run.attempt(what, partial(_add_row, run, servers, client, 1, what, FIRST_RECORD))
    for client in run.clients:
        what = f"First group of a fresh server, {_CLIENT_NAMES[client]}"
        run.attempt(what, partial(_add_first_group_row, run, client, what))


def _add_row(
    run: Run, servers: tuple[Server, Server], client: str, count: int, what: str, goal: Goal
) -> None:
    def wait(server: Server) -> float:
        with _filled_topic(server) as topic:
            return statistics.median(_waits_ms(run, server, client, topic, count))

    for server in servers:
        wait(server)
    waits = take_turns(servers, run.sizes.first_record_rounds, wait)
    run.results.rows.append(Row(SECTION, what, "ms", Comparison(*waits), goal))


def _add_first_group_row(run: Run, client: str, what: str) -> None:
    waits: tuple[list[float], list[float]] = ([], [])
    for _ in range(run.sizes.first_group_rounds):
        with run.pair.made() as servers:
            for side, server in enumerate(servers):
                server.wait_for_members()
                server.start()
                with _filled_topic(server) as topic:
                    waits[side].extend(_waits_ms(run, server, client, topic, 1))
                server.kill()
    run.results.rows.append(Row(SECTION, what, "ms", Comparison(*waits), FIRST_RECORD))


def _waits_ms(run: Run, server: Server, client: str, topic: str, count: int) -> list[float]:
    """What consumers of so many new groups waited, one after the other."""
    group_ids = [f"first-record-{next(_numbers)}" for _ in range(count)]
    if client == "java":
        return [run.java.first_record_ms(server, topic, group_id) for group_id in group_ids]
    waits: list[float] = librdkafka_client.run_job(
        "first_records", bootstrap=server.bootstrap, topic=topic, group_ids=group_ids
    )
    return waits


@contextmanager
def _filled_topic(server: Server) -> Iterator[str]:
    with server.topic(f"first-record-{next(_numbers)}", _PARTITION_COUNT) as topic:
        frames = frames_for_all(topic, _PARTITION_COUNT, 100)
        with RequestLoad(server.port, frames, connection_count=1, in_flight=1) as load:
            load.run(60.0, _PARTITION_COUNT)
        yield topic
