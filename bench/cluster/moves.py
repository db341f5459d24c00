"""Moving partitions to other brokers: how long it takes, and what producers notice of it.

Three moves, each on a fresh cluster, one cluster at a time because the machine has no room for
more: partitions full of data while somebody else writes, everything that one broker holds, and very
many empty partitions, which is the controller's work alone. No throttle is set on either side.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.broker.raw_client import wait_until
from bench.broker.results import Goal, Row
from bench.broker.sizes import MEGABYTE
from bench.cluster.clusters import BROKER_IDS, Cluster
from bench.cluster.questions import ask, look, topic
from bench.cluster.run import Run
from bench.cluster.sizes import PARTITION_COUNT
from bench.cluster.writer import Acknowledged, SteadyWriter
from bench.rounds import Comparison, percentile
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, NewTopic, require_all

SECTION = "Moving partitions to other brokers"
_GOAL = Goal(ratio_max=1.0)
_RATE_PER_S = 200.0
_QUIET_S = 3.0
_RECORD_SIZE_BYTES = 50_000
_TIMEOUT_S = 1_800.0
_POLL_S = 0.05
#: Kafka's controller takes no more than this many partitions from a request.
_PARTITIONS_PER_REQUEST = 1_000
_FLUSH_TIMEOUT_S = 600.0

Replicas = Mapping[TopicPartition, Sequence[int]]


class _Figures(NamedTuple):
    data_s: float
    #: Of producers that write to other partitions meanwhile, over what it is without a move.
    p99_ms: float
    quiet_p99_ms: float
    drain_s: float
    many_s: float
    many_cpu_s: float


def measure(run: Run) -> None:
    run.attempt("Moves", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    found: list[_Figures] = []
    for side in range(run.pair.side_count):
        with run.pair.one(side) as cluster:
            run.say(f"  {cluster.name}")
            moved = _move_data(run, cluster)
            drain_s = _drain(run, cluster)
            found.append(_Figures(*moved, drain_s, *_move_many(run, cluster)))
    sizes = run.sizes
    gigabytes = sizes.moved_megabytes / 1_000
    many = sizes.many_partitions
    for what, unit, values, goal in (
        (f"{gigabytes:g} GB to another broker", "s", [f.data_s for f in found], _GOAL),
        ("p99 of acks=all elsewhere, meanwhile", "ms", [f.p99_ms for f in found], _GOAL),
        ("p99 of acks=all elsewhere, before", "ms", [f.quiet_p99_ms for f in found], None),
        (
            f"All off a broker with {sizes.drained_partitions:,} partitions",
            "s",
            [f.drain_s for f in found],
            _GOAL,
        ),
        (f"{many:,} empty partitions", "s", [f.many_s for f in found], _GOAL),
        (f"{many:,} empty partitions, CPU", "s", [f.many_cpu_s for f in found], _GOAL),
    ):
        run.results.rows.append(
            Row(SECTION, what, unit, Comparison(*([value] for value in values)), goal)
        )


def _move_data(run: Run, cluster: Cluster) -> tuple[float, float, float]:
    """Seconds of the move, and the latency of others meanwhile and before, in ms."""
    first, second, third = BROKER_IDS
    name = "moved"
    before = {TopicPartition(name, number): (first, second) for number in range(PARTITION_COUNT)}
    after = dict.fromkeys(before, (third, second))
    _create(cluster, before)
    _fill(cluster, name, run.sizes.moved_megabytes)
    with (
        topic(cluster, "elsewhere", 1) as elsewhere,
        SteadyWriter(cluster, elsewhere, run.scratch / "stop", rate_per_s=_RATE_PER_S) as writer,
    ):
        time.sleep(_QUIET_S)
        begun_ns = time.monotonic_ns()
        seconds = _move(cluster, after)
        # A small one is over before enough was sent to tell.
        time.sleep(max(_QUIET_S - seconds, 0))
        ended_ns = time.monotonic_ns()
        acknowledged = writer.finish()
    _delete(cluster, name)
    quiet_ns = begun_ns - int(_QUIET_S * 1e9)
    p99_ms = _p99_ms(acknowledged, begun_ns, ended_ns)
    quiet_p99_ms = _p99_ms(acknowledged, quiet_ns, begun_ns)
    run.say(f"  data moved in {seconds:.1f} s, p99 {quiet_p99_ms:.1f} -> {p99_ms:.1f} ms")
    return seconds, p99_ms, quiet_p99_ms


def _drain(run: Run, cluster: Cluster) -> float:
    """Seconds until a broker with so many partitions has none."""
    first, second, third = BROKER_IDS
    name = "drained"
    partitions = [TopicPartition(name, each) for each in range(run.sizes.drained_partitions)]
    # It leads a half of them, and every other broker has the second replica of a half.
    orders = ((third, first), (second, third))
    _create(cluster, {each: orders[each.partition % 2] for each in partitions})
    seconds = _move(cluster, dict.fromkeys(partitions, (first, second)))
    _delete(cluster, name)
    run.say(f"  {len(partitions):,} partitions drained in {seconds:.1f} s")
    return seconds


def _move_many(run: Run, cluster: Cluster) -> tuple[float, float]:
    """Seconds, and CPU seconds of all brokers and of the controller, for many empty partitions."""
    first, second, _third = BROKER_IDS
    per_topic = run.sizes.partitions_per_topic
    names = [f"empty-{number}" for number in range(max(1, run.sizes.many_partitions // per_topic))]
    partitions = [TopicPartition(name, number) for name in names for number in range(per_topic)]
    _create(cluster, dict.fromkeys(partitions, (first,)))

    def cpu_s() -> float:
        return cluster.brokers_cpu_seconds() + cluster.coordination_cpu_seconds()

    before_s = cpu_s()
    seconds = _move(cluster, dict.fromkeys(partitions, (second,)))
    spent_s = cpu_s() - before_s
    run.say(f"  {len(partitions):,} empty partitions in {seconds:.1f} s, CPU {spent_s:.1f} s")
    return seconds, spent_s


def _move(cluster: Cluster, targets: Replicas) -> float:
    """Seconds from the first request until nothing moves any more, and all is where it should."""
    begun_s = time.monotonic()
    for some in _portions(targets):

        async def begin(admin: AdminOperations, some: Replicas = some) -> None:
            await admin.alter_partition_reassignments(some)

        ask(cluster, begin)
    seconds = _wait_until_nothing_moves(cluster, begun_s)
    _check_places(cluster, targets)
    return seconds


def _wait_until_nothing_moves(cluster: Cluster, begun_s: float) -> float:
    """Seconds since; whoever asks takes a fifth of the time at most, since answers cost too."""
    while True:
        asked_s = time.monotonic()
        if not look(cluster, lambda admin: admin.list_partition_reassignments()):
            return asked_s - begun_s
        if asked_s - begun_s > _TIMEOUT_S:
            raise RuntimeError(f"Partitions of {cluster.name} move for {_TIMEOUT_S:g} s already")
        time.sleep(_POLL_S + 4 * (time.monotonic() - asked_s))


def _check_places(cluster: Cluster, targets: Replicas) -> None:
    def have_arrived() -> bool:
        found = {
            TopicPartition(info.name, each.partition): each
            for info in look(cluster, lambda admin: admin.list_topics())
            for each in info.partitions
        }
        return all(
            name in found and set(found[name].isr) == set(found[name].replicas) == set(brokers)
            for name, brokers in targets.items()
        )

    wait_until(have_arrived, f"Partitions of {cluster.name} are elsewhere", _TIMEOUT_S)


def _create(cluster: Cluster, replicas: Replicas) -> None:
    """Topics whose partitions lie where they are told to."""
    for some in _portions(replicas):
        assignments: dict[str, dict[int, Sequence[int]]] = {}
        for each, brokers in some.items():
            assignments.setdefault(each.topic, {})[each.partition] = brokers
        topics = [NewTopic(name, assignments=places) for name, places in assignments.items()]

        async def create(admin: AdminOperations, topics: Sequence[NewTopic] = topics) -> None:
            require_all(await admin.create_topics(topics))

        ask(cluster, create)
    _check_places(cluster, replicas)


def _delete(cluster: Cluster, name: str) -> None:
    async def delete(admin: AdminOperations) -> None:
        await admin.delete_topics([name])

    ask(cluster, delete)


def _portions(replicas: Replicas) -> list[Replicas]:
    """Whole topics together, in requests that both controllers take."""
    portions: list[dict[TopicPartition, Sequence[int]]] = [{}]
    for each, brokers in replicas.items():
        if len(portions[-1]) >= _PARTITIONS_PER_REQUEST:
            portions.append({})
        portions[-1][each] = brokers
    return list(portions)


def _fill(cluster: Cluster, name: str, megabytes: int) -> None:
    """Write so much into the partitions of a topic, evenly, with acks=all."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.kbytes": 262_144,
        }
    )
    payload = os.urandom(_RECORD_SIZE_BYTES)
    for number in range(int(megabytes * MEGABYTE) // _RECORD_SIZE_BYTES + 1):
        while True:
            try:
                producer.produce(name, payload, partition=number % PARTITION_COUNT)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(_FLUSH_TIMEOUT_S):
        raise RuntimeError(f"{left} records could not be written to {cluster.name}")


def _p99_ms(acknowledged: list[Acknowledged], from_ns: int, to_ns: int) -> float:
    found = [
        (each.acknowledged_ns - each.sent_ns) / 1e6
        for each in acknowledged
        if from_ns <= each.sent_ns < to_ns
    ]
    return percentile(found, 0.99)
