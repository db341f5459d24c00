"""Producing with acks=all to three replicas, as fast as a client can, and what that costs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bench.broker.results import Goal, Row
from bench.broker.run import take_turns
from bench.broker.sizes import MEGABYTE, size_text
from bench.client.job import run_client
from bench.client.load import Load
from bench.cluster.clusters import Cluster
from bench.cluster.questions import topic
from bench.cluster.run import Run
from bench.cluster.sizes import PARTITION_COUNT
from bench.rounds import Comparison

SECTION = "Throughput, acks=all, 3 replicas"
CPU_SECTION = "CPU of the three brokers"
_CLIENTS = {"confluent-produce": "librdkafka", "headwater-produce": "Headwater's client"}
_GOAL = Goal(ratio_min=1.0)
_WARM_UP_SIZE_BYTES = 1_000


class _Figures(NamedTuple):
    megabytes_per_s: float
    cpu_s_per_gigabyte: float
    cores: float


def warm_up(cluster: Cluster, seconds: float) -> None:
    """Work that is not measured."""
    _produce(cluster, "confluent-produce", _WARM_UP_SIZE_BYTES, seconds)


def measure(run: Run, clusters: tuple[Cluster, ...]) -> None:
    for size_bytes in run.sizes.record_sizes_bytes:
        for job, client in _CLIENTS.items():
            what = f"Produce {size_text(size_bytes)}, {client}"
            run.attempt(what, partial(_add_rows, run, clusters, job, size_bytes, what))


def _add_rows(
    run: Run, clusters: tuple[Cluster, ...], job: str, size_bytes: int, what: str
) -> None:
    produce = partial(_produce, job=job, size_bytes=size_bytes, seconds=run.sizes.run_s)
    ours, peer = take_turns(clusters, run.sizes.rounds, produce)
    speeds = Comparison(
        [one.megabytes_per_s for one in ours], [one.megabytes_per_s for one in peer]
    )
    costs = Comparison(
        [one.cpu_s_per_gigabyte for one in ours], [one.cpu_s_per_gigabyte for one in peer]
    )
    cores = (max(one.cores for one in ours), max(one.cores for one in peer))
    run.results.rows.append(Row(SECTION, what, "MB/s", speeds, _GOAL, cores))
    run.results.rows.append(Row(CPU_SECTION, what, "CPU s/GB", costs))


def _produce(cluster: Cluster, job: str, size_bytes: int, seconds: float) -> _Figures:
    with topic(cluster, "produce", PARTITION_COUNT) as name:
        load = Load(
            bootstrap=cluster.bootstrap,
            topic=name,
            partition_count=PARTITION_COUNT,
            record_size_bytes=size_bytes,
            is_keyed=False,
            acks="all",
            is_tuned=True,
            run_s=seconds,
        )
        before_s = cluster.brokers_cpu_seconds()
        result = run_client(job, load)
        # Followers of one replica are still at work when the other has acknowledged: with all three
        # in sync nothing is left over.
        cpu_s = cluster.brokers_cpu_seconds() - before_s
    size_megabytes = result["record_count"] * size_bytes / MEGABYTE
    return _Figures(
        size_megabytes / result["seconds"],
        cpu_s * 1_000 / max(size_megabytes, 1e-9),
        cpu_s / result["seconds"],
    )
