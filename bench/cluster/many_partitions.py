"""A cluster with very many partitions: making them, and losing brokers and the controller then.

One cluster at a time, because the machine has no room for both.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

from bench.broker.results import Goal, Row
from bench.broker.sizes import MEGABYTE
from bench.cluster.clusters import BROKER_IDS, Cluster, HeadwaterCluster
from bench.cluster.questions import (
    controller_id,
    create_topics,
    topic_infos,
    wait_for_brokers,
    wait_in_sync,
    wait_led,
)
from bench.cluster.run import Run
from bench.cluster.sizes import SESSION_TIMEOUT_MS
from bench.rounds import Comparison

#: Kafka's controller takes no more than this many records, one a partition, from a request.
_PARTITIONS_PER_REQUEST = 1_000
_MEMORY_GOAL = Goal(ratio_max=0.2)


class _Figures(NamedTuple):
    creation_s: float
    memory_megabytes: float
    failover_s: float
    return_s: float


def measure(run: Run) -> None:
    count = run.sizes.many_partitions
    run.attempt(f"{count:,} partitions", lambda: _add_rows(run, count))


def _add_rows(run: Run, count: int) -> None:
    found: list[_Figures] = []
    for side in range(run.pair.side_count):
        with run.pair.one(side) as cluster:
            run.say(f"  {cluster.name}")
            names = _topic_names(run)
            found.append(_measure_one(run, cluster, names))
            if isinstance(cluster, HeadwaterCluster):
                run.attempt(
                    f"  {count:,} partitions, kill -9 of the controller",
                    partial(_measure_controller, run, cluster, names),
                )
    section = f"{count:,} partitions, 3 replicas"
    session_s = SESSION_TIMEOUT_MS / 1000
    for what, unit, values, goal in (
        ("Creation, until all replicas are in sync", "s", [f.creation_s for f in found], None),
        ("Memory of three brokers", "MB", [f.memory_megabytes for f in found], _MEMORY_GOAL),
        (
            f"kill -9 of a broker, sessions of {session_s:g} s: until all partitions have leaders",
            "s",
            [f.failover_s for f in found],
            None,
        ),
        ("Its return: until all replicas are in sync", "s", [f.return_s for f in found], None),
    ):
        values_by_side = Comparison(*([value] for value in values))
        run.results.rows.append(Row(section, what, unit, values_by_side, goal))


def _topic_names(run: Run) -> list[str]:
    count = max(1, run.sizes.many_partitions // run.sizes.partitions_per_topic)
    return [f"many-{number}" for number in range(count)]


def _measure_one(run: Run, cluster: Cluster, names: list[str]) -> _Figures:
    start_s = time.monotonic()
    per_request = max(1, _PARTITIONS_PER_REQUEST // run.sizes.partitions_per_topic)
    for first in range(0, len(names), per_request):
        some = names[first : first + per_request]
        create_topics(cluster, some, run.sizes.partitions_per_topic, {})
    wait_in_sync(cluster, names)
    creation_s = time.monotonic() - start_s
    run.say(f"  made in {creation_s:.1f} s")
    memory = cluster.brokers_resident_bytes() / MEGABYTE
    victim = next(each for each in BROKER_IDS if each != controller_id(cluster))
    failover_s = _kill(cluster, victim, names)
    run.say(f"  led again after {failover_s:.1f} s")
    return_s = _bring_back(cluster, victim, names)
    run.say(f"  in sync again after {return_s:.1f} s")
    return _Figures(creation_s, memory, failover_s, return_s)


def _measure_controller(run: Run, cluster: Cluster, names: list[str]) -> None:
    controller = controller_id(cluster)
    led = sum(
        partition.leader_id == controller
        for name, info in topic_infos(cluster).items()
        if name in names
        for partition in info.partitions
    )
    seconds = _kill(cluster, controller, names)
    what = (
        f"kill -9 of the controller, which led {led:,} of {run.sizes.many_partitions:,} partitions"
    )
    text = (
        f"all partitions led after {seconds:.1f} s, {SESSION_TIMEOUT_MS / 1000:g} s of it session"
    )
    run.results.alone.append((what, text))
    run.say(f"  {what}: {text}")


def _kill(cluster: Cluster, broker_id: int, names: list[str]) -> float:
    """Seconds until others lead what the broker led."""
    start_s = time.monotonic()
    cluster.kill_broker(broker_id)
    wait_led(cluster, names, without=broker_id)
    return time.monotonic() - start_s


def _bring_back(cluster: Cluster, broker_id: int, names: list[str]) -> float:
    start_s = time.monotonic()
    cluster.start_broker(broker_id)
    wait_for_brokers(cluster)
    wait_in_sync(cluster, names)
    return time.monotonic() - start_s
