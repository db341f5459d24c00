"""How long a single record takes until all in-sync replicas have it, at a modest rate."""

from __future__ import annotations

import time
from pathlib import Path

from bench.broker.results import LATENCY, Row
from bench.broker.run import take_turns
from bench.cluster.clusters import Cluster
from bench.cluster.questions import topic
from bench.cluster.run import Run
from bench.cluster.writer import SteadyWriter
from bench.rounds import Comparison, percentile

SECTION = "Latency of acks=all, 3 replicas"
RATE_PER_S = 500.0
#: Connections to all brokers are made in it.
_LEFT_OUT_S = 0.5


def measure(run: Run, clusters: tuple[Cluster, ...]) -> None:
    run.attempt(f"Latency at {RATE_PER_S:,.0f} records/s", lambda: _add_rows(run, clusters))


def _add_rows(run: Run, clusters: tuple[Cluster, ...]) -> None:
    ours, peer = take_turns(
        clusters,
        run.sizes.latency_rounds,
        lambda cluster: latencies_ms(cluster, run.sizes.latency_s, run.scratch / "stop"),
    )
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = Comparison(
            [percentile(one, share) for one in ours], [percentile(one, share) for one in peer]
        )
        what = f"{name} at {RATE_PER_S:,.0f} records/s"
        run.results.rows.append(Row(SECTION, what, "ms", values, LATENCY))


def latencies_ms(cluster: Cluster, seconds: float, stop_path: Path) -> list[float]:
    """From the call to the acknowledgement, for the records of so many seconds."""
    with (
        topic(cluster, "latency", 1) as name,
        SteadyWriter(cluster, name, stop_path, rate_per_s=RATE_PER_S) as writer,
    ):
        time.sleep(_LEFT_OUT_S + seconds)
        acknowledged = writer.finish()
    first_ns = acknowledged[0].sent_ns + int(_LEFT_OUT_S * 1e9)
    found = [
        (each.acknowledged_ns - each.sent_ns) / 1e6
        for each in acknowledged
        if each.sent_ns >= first_ns
    ]
    if not found:
        raise RuntimeError(f"{cluster.name} acknowledged nothing but its first records")
    return found
