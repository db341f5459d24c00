"""How much is measured: full for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from dataclasses import dataclass

#: Equal for both: after so long without a sign of life a broker counts as gone.
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500
REPLICATION_FACTOR = 3
MIN_INSYNC_REPLICAS = 2
PARTITION_COUNT = 6


@dataclass(frozen=True, slots=True)
class Sizes:
    warm_up_s: float
    #: Throughput: turns of each side, how long one takes, and the sizes of records.
    rounds: int
    run_s: float
    record_sizes_bytes: tuple[int, ...]
    #: Latency of single records.
    latency_rounds: int
    latency_s: float
    #: How often a leader is killed, and how often all brokers are restarted in turn.
    failover_rounds: int
    restart_rounds: int
    #: How many partitions the large cluster has, and how many of them a topic.
    many_partitions: int
    partitions_per_topic: int
    #: What is moved to another broker: data, and the partitions of a broker that is emptied.
    moved_megabytes: int
    drained_partitions: int


FULL = Sizes(
    warm_up_s=20.0,
    rounds=5,
    run_s=5.0,
    record_sizes_bytes=(100, 1_000),
    latency_rounds=5,
    latency_s=10.0,
    failover_rounds=10,
    restart_rounds=2,
    many_partitions=10_000,
    partitions_per_topic=100,
    moved_megabytes=10_000,
    drained_partitions=1_000,
)
QUICK = Sizes(
    warm_up_s=6.0,
    rounds=2,
    run_s=2.0,
    record_sizes_bytes=(100, 1_000),
    latency_rounds=2,
    latency_s=4.0,
    failover_rounds=2,
    restart_rounds=1,
    many_partitions=1_000,
    partitions_per_topic=100,
    moved_megabytes=1_000,
    drained_partitions=200,
)
TINY = Sizes(
    warm_up_s=0.2,
    rounds=1,
    run_s=0.1,
    record_sizes_bytes=(1_000,),
    latency_rounds=1,
    latency_s=0.3,
    failover_rounds=1,
    restart_rounds=1,
    many_partitions=20,
    partitions_per_topic=10,
    moved_megabytes=2,
    drained_partitions=10,
)
