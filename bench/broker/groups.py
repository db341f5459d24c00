"""Consumer groups: how soon a new one gets records, what heartbeats cost, and offset commits.

Many groups are held, and all their members send heartbeats: at the rate at which clients do by
default, where the time to an answer and the server's CPU count, and as fast as they are answered.
Commits come from clients without a group's membership, over several connections, each commit for
one partition.
"""

from __future__ import annotations

import itertools
from functools import partial

from bench.broker import first_record
from bench.broker.client_run import ClientRun, ServerRun, observe
from bench.broker.group_crowd import Member, disband, form_groups, heartbeat_frames
from bench.broker.raw_client import encode_frame
from bench.broker.request_load import HEARTBEAT, OFFSET_COMMIT, RequestLoad
from bench.broker.results import COORDINATION, LATENCY, Row, full_spread
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.rounds import Comparison, percentile
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

SECTION = "Consumer groups"
MEMBER_COUNT = 5
#: What clients have by default.
HEARTBEAT_INTERVAL_S = 3.0
OFFSETS_TOPIC = "__consumer_offsets"
_CREW_COUNT = 8
_CONNECTION_COUNT = 8
_IN_FLIGHT = 5
_COMMITTING_GROUP_COUNT = 20
_PARTITION_COUNT = 10

_numbers = itertools.count(1)


def measure(run: Run, servers: tuple[Server, Server]) -> None:
    first_record.measure(run, servers)
    what = f"Heartbeats, {run.sizes.group_count:,} groups of {MEMBER_COUNT}"
    run.attempt(what, partial(_measure_heartbeats, run, servers, what))
    for durable in (False, True) if run.sizes.coordinates_durably else (False,):
        name = "on disk" if durable else "no fsync"
        what = f"Offset commits, {name}"
        run.attempt(what, partial(_measure_commits, run, servers, durable, what))


# -- heartbeats ------------------------------------------------------------------------------------


def _measure_heartbeats(run: Run, servers: tuple[Server, Server], what: str) -> None:
    sizes = run.sizes
    crowds: dict[int, list[Member]] = {}
    try:
        for server in servers:
            group_ids = [f"crowd-{next(_numbers)}" for _ in range(sizes.group_count)]
            crowds[server.port] = form_groups(
                server.port, group_ids, member_count=MEMBER_COUNT, crew_count=_CREW_COUNT
            )
            run.say(f"  {server.name}: {len(crowds[server.port]):,} members")
        _add_steady_rows(run, servers, crowds, what)
        _add_fastest_row(run, servers, crowds, what)
    finally:
        for server in servers:
            disband(server.port, crowds.get(server.port, []))


def _add_steady_rows(
    run: Run, servers: tuple[Server, Server], crowds: dict[int, list[Member]], what: str
) -> None:
    latencies: dict[int, list[float]] = {server.port: [] for server in servers}

    def beat(server: Server) -> ServerRun:
        frames = heartbeat_frames(crowds[server.port])
        rate_per_s = len(frames) / HEARTBEAT_INTERVAL_S
        with RequestLoad(
            server.port, frames, connection_count=_CONNECTION_COUNT, in_flight=1, kind=HEARTBEAT
        ) as load:

            def work() -> ClientRun:
                taken_ms = load.run_at_rate(run.sizes.group_s, rate_per_s)
                latencies[server.port].append(percentile(taken_ms, 0.99))
                return ClientRun(len(taken_ms), 0, run.sizes.group_s)

            return observe(server, work)

    for server in servers:
        beat(server)
    for each in latencies.values():
        each.clear()
    ours, peer = take_turns(servers, run.sizes.group_rounds, beat)
    every = f"every {HEARTBEAT_INTERVAL_S:g} s"
    p99 = Comparison(latencies[servers[0].port], latencies[servers[1].port])
    run.results.rows.append(Row(SECTION, f"{what}, {every}: p99", "ms", p99, LATENCY))
    cores = Comparison([one.cores for one in ours], [one.cores for one in peer])
    run.results.rows.append(Row(SECTION, f"{what}, {every}: CPU", "cores", cores))


def _add_fastest_row(
    run: Run, servers: tuple[Server, Server], crowds: dict[int, list[Member]], what: str
) -> None:
    def beat(server: Server) -> ServerRun:
        frames = heartbeat_frames(crowds[server.port])
        with RequestLoad(
            server.port,
            frames,
            connection_count=_CONNECTION_COUNT,
            in_flight=_IN_FLIGHT,
            kind=HEARTBEAT,
        ) as load:
            return observe(server, lambda: _counted(load, run.sizes.group_s))

    for server in servers:
        beat(server)
    measured = take_turns(servers, run.sizes.group_rounds, beat)
    add_rate_row(run, SECTION, f"{what}, as fast as they go", "heartbeats/s", measured)


# -- commits ---------------------------------------------------------------------------------------


def _measure_commits(run: Run, servers: tuple[Server, Server], durable: bool, what: str) -> None:
    def commit(server: Server) -> ServerRun:
        with server.topic(f"committed-{next(_numbers)}", _PARTITION_COUNT) as topic:
            frames = commit_frames(topic, next(_numbers))
            with (
                server.durable([OFFSETS_TOPIC], durable),
                RequestLoad(
                    server.port,
                    frames,
                    connection_count=_CONNECTION_COUNT,
                    in_flight=_IN_FLIGHT,
                    kind=OFFSET_COMMIT,
                ) as load,
            ):
                return observe(server, lambda: _counted(load, run.sizes.group_s))

    for server in servers:
        _make_offsets_topic(server)
        commit(server)
    measured = take_turns(servers, run.sizes.group_rounds, commit)
    connections = f"{_CONNECTION_COUNT} connections, {_IN_FLIGHT} in flight each"
    add_rate_row(run, SECTION, f"{what}, {connections}", "commits/s", measured)


def _make_offsets_topic(server: Server) -> None:
    """The first group makes it; its settings can be changed from then on."""
    group_id = f"crowd-{next(_numbers)}"
    disband(server.port, form_groups(server.port, [group_id], member_count=1, crew_count=1))


def commit_frames(topic: str, number: int) -> list[bytes]:
    """Commits of several groups, one partition each."""
    return [
        encode_frame(
            OffsetCommitRequest(
                group_id=f"committing-{number}-{group}",
                topics=[
                    OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=partition
                            )
                        ],
                    )
                ],
            )
        )
        for group in range(_COMMITTING_GROUP_COUNT)
        for partition in range(_PARTITION_COUNT)
    ]


def _counted(load: RequestLoad, seconds: float) -> ClientRun:
    count = load.run(seconds)
    return ClientRun(count.answer_count, 0, count.seconds)


def add_rate_row(
    run: Run,
    section: str,
    what: str,
    unit: str,
    measured: tuple[list[ServerRun], list[ServerRun]],
) -> None:
    """A row of what was done each second, with the goal of coordinators."""
    ours, peer = measured
    rates = Comparison([one.records_per_s for one in ours], [one.records_per_s for one in peer])
    cores = (
        full_spread([one.cores for one in ours]).median,
        full_spread([one.cores for one in peer]).median,
    )
    run.results.rows.append(Row(section, what, unit, rates, COORDINATION, cores))
