"""How long a partition takes no writes when its leader dies, and when all brokers restart in turn.

A producer writes steadily with acks=all. What is told is the longest time without an
acknowledgement: what an application sees. With the same session timeout on both sides most of it,
after a `kill -9`, is that timeout. Beside it stands when the cluster took writes again, from
whoever asked all the time: what is over that, the producer has waited by itself.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from bench.broker.results import Goal, Row
from bench.cluster.clusters import BROKER_IDS, Cluster
from bench.cluster.questions import leader_of, topic, wait_for_brokers, wait_in_sync
from bench.cluster.run import Run
from bench.cluster.sizes import PARTITION_COUNT, SESSION_TIMEOUT_MS
from bench.cluster.write_probe import WriteProbe
from bench.cluster.writer import SteadyWriter, longest_gap_ms
from bench.rounds import Comparison

SECTION = "Failures and restarts, acks=all, 3 replicas"
_RATE_PER_S = 100.0
_RESTART_RATE_PER_S = 300.0
#: A little of undisturbed writing before and after.
_QUIET_S = 3.0
_GOAL = Goal(ratio_max=1.0)


def measure(run: Run, clusters: tuple[Cluster, ...]) -> None:
    run.attempt("kill -9 of a leader", lambda: _measure_kills(run, clusters))
    run.attempt("Rolling restart", lambda: _measure_restarts(run, clusters))


def _measure_kills(run: Run, clusters: tuple[Cluster, ...]) -> None:
    found: list[list[_Outage]] = [[] for _ in clusters]
    for _ in range(run.sizes.failover_rounds):
        for outages, cluster in zip(found, clusters, strict=True):
            outages.append(kill_leader(run, cluster))
            run.say(
                f"  {cluster.name}: {outages[-1].gap_s:.2f} s, "
                f"the cluster itself {outages[-1].cluster_s:.2f} s"
            )
    ours, peer = found
    what = f"kill -9 of the leader, sessions of {SESSION_TIMEOUT_MS / 1000:g} s: no writes for"
    gaps = Comparison([one.gap_s for one in ours], [one.gap_s for one in peer])
    run.results.rows.append(Row(SECTION, what, "s", gaps, _GOAL))
    what = "Of it, until the cluster took a write from whoever asked all the time"
    ready = Comparison([one.cluster_s for one in ours], [one.cluster_s for one in peer])
    run.results.rows.append(Row(SECTION, what, "s", ready))


class _Outage(NamedTuple):
    """What a producer saw, and when the cluster could have served it; in seconds."""

    gap_s: float
    cluster_s: float


def kill_leader(run: Run, cluster: Cluster) -> _Outage:
    """Kill the leader of a partition that is written to, and bring it back."""
    with topic(cluster, "failover", 1) as name:
        leader = leader_of(cluster, name)
        probe = WriteProbe(cluster, name, [each for each in BROKER_IDS if each != leader])
        with SteadyWriter(cluster, name, run.scratch / "stop", rate_per_s=_RATE_PER_S) as writer:
            time.sleep(_QUIET_S)
            killed_ns = time.monotonic_ns()
            cluster.kill_broker(leader)
            with probe:
                time.sleep(SESSION_TIMEOUT_MS / 1000 + 2 * _QUIET_S)
            acknowledged = writer.finish()
        cluster.start_broker(leader)
        wait_for_brokers(cluster)
        wait_in_sync(cluster, [name])
    return _Outage(
        longest_gap_ms(acknowledged, killed_ns) / 1000, (probe.acknowledged_ns - killed_ns) / 1e9
    )


def _measure_restarts(run: Run, clusters: tuple[Cluster, ...]) -> None:
    gaps_ms: list[list[float]] = [[] for _ in clusters]
    times_s: list[list[float]] = [[] for _ in clusters]
    for _ in range(run.sizes.restart_rounds):
        for gaps, times, cluster in zip(gaps_ms, times_s, clusters, strict=True):
            gap_ms, seconds = restart_all(run, cluster)
            run.say(f"  {cluster.name}: {gap_ms:.0f} ms, restarted in {seconds:.1f} s")
            gaps.append(gap_ms)
            times.append(seconds)
    what = "Clean restart of all brokers in turn: longest time without writes in a partition"
    run.results.rows.append(Row(SECTION, what, "ms", Comparison(*gaps_ms), _GOAL))
    what = "The same: time until all brokers are back and in sync"
    run.results.rows.append(Row(SECTION, what, "s", Comparison(*times_s)))


def restart_all(run: Run, cluster: Cluster) -> tuple[float, float]:
    """The longest gap in a partition, in ms, and how long the restarts took, in seconds."""
    with (
        topic(cluster, "restart", PARTITION_COUNT) as name,
        SteadyWriter(
            cluster,
            name,
            run.scratch / "stop",
            partition_count=PARTITION_COUNT,
            rate_per_s=_RESTART_RATE_PER_S,
        ) as writer,
    ):
        time.sleep(_QUIET_S)
        start_ns = time.monotonic_ns()
        for broker_id in BROKER_IDS:
            cluster.stop_broker(broker_id)
            cluster.start_broker(broker_id)
            wait_for_brokers(cluster)
            wait_in_sync(cluster, [name])
        end_ns = time.monotonic_ns()
        time.sleep(_QUIET_S)
        acknowledged = writer.finish()
    return longest_gap_ms(acknowledged, start_ns), (end_ns - start_ns) / 1e9
