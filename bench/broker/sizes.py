"""How much each measurement does. Full is for the record, quick for a look, tiny for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEGABYTE = 10**6
GIGABYTE = 10**9

RECORD_SIZES_BYTES = (100, 1_000, 10_000)


@dataclass(frozen=True, slots=True)
class Sizes:
    #: How long a server is under load before it is measured.
    warm_up_s: float
    #: Turns that each side takes in a comparison, with Java's clients and with librdkafka.
    java_rounds: int
    librdkafka_rounds: int
    #: How long one run of a client should take; how many records that is, is tried out first.
    run_s: float
    #: The sizes that a client measures with acks=all as well, and those of librdkafka.
    acks_all_sizes_bytes: Mapping[str, tuple[int, ...]]
    librdkafka_sizes_bytes: tuple[int, ...]
    #: How much one run may write, and how much lies in the topics that are consumed.
    run_bytes_max: int
    consumed_bytes: int
    #: Single-record requests, latency, start.
    request_rounds: int
    request_s: float
    latency_rounds: int
    latency_s: float
    start_rounds: int
    #: Growth.
    partition_counts: tuple[int, ...]
    partition_load_s: float
    connection_counts: tuple[int, ...]
    connection_load_s: float
    growth_rounds: int
    #: Groups: rounds, and how many consumers a round waits for; groups with heartbeats; loads.
    first_record_rounds: int
    first_record_count: int
    first_group_rounds: int
    group_count: int
    group_rounds: int
    group_s: float
    #: Transactions: how many a client runs one after the other, and how long the bare load runs.
    transaction_rounds: int
    transaction_count: int
    transaction_s: float
    #: Commits and transactions with fsync as well.
    coordinates_durably: bool


FULL = Sizes(
    warm_up_s=20.0,
    java_rounds=5,
    librdkafka_rounds=3,
    run_s=4.0,
    acks_all_sizes_bytes={"java": RECORD_SIZES_BYTES, "librdkafka": RECORD_SIZES_BYTES},
    librdkafka_sizes_bytes=RECORD_SIZES_BYTES,
    run_bytes_max=1_500 * MEGABYTE,
    consumed_bytes=GIGABYTE,
    request_rounds=5,
    request_s=4.0,
    latency_rounds=5,
    latency_s=10.0,
    start_rounds=7,
    partition_counts=(1, 10, 100, 1_000, 3_000, 10_000),
    partition_load_s=3.0,
    connection_counts=(1, 10, 100, 500, 1_000, 2_000),
    connection_load_s=3.0,
    growth_rounds=3,
    first_record_rounds=5,
    first_record_count=5,
    first_group_rounds=3,
    group_count=1_000,
    group_rounds=5,
    group_s=4.0,
    transaction_rounds=5,
    transaction_count=1_500,
    transaction_s=4.0,
    coordinates_durably=True,
)
QUICK = Sizes(
    warm_up_s=6.0,
    java_rounds=2,
    librdkafka_rounds=2,
    run_s=2.0,
    acks_all_sizes_bytes={"java": (1_000,), "librdkafka": ()},
    librdkafka_sizes_bytes=(1_000,),
    run_bytes_max=800 * MEGABYTE,
    consumed_bytes=500 * MEGABYTE,
    request_rounds=2,
    request_s=2.0,
    latency_rounds=2,
    latency_s=4.0,
    start_rounds=3,
    partition_counts=(1, 100, 1_000),
    partition_load_s=1.5,
    connection_counts=(1, 100, 1_000),
    connection_load_s=1.5,
    growth_rounds=1,
    first_record_rounds=2,
    first_record_count=3,
    first_group_rounds=1,
    group_count=1_000,
    group_rounds=2,
    group_s=1.0,
    transaction_rounds=2,
    transaction_count=200,
    transaction_s=1.0,
    coordinates_durably=True,
)
TINY = Sizes(
    warm_up_s=0.2,
    java_rounds=1,
    librdkafka_rounds=2,
    run_s=0.1,
    acks_all_sizes_bytes={"java": (), "librdkafka": (1_000,)},
    librdkafka_sizes_bytes=(1_000,),
    run_bytes_max=2 * MEGABYTE,
    consumed_bytes=MEGABYTE,
    request_rounds=1,
    request_s=0.1,
    latency_rounds=1,
    latency_s=0.3,
    start_rounds=1,
    partition_counts=(1, 20),
    partition_load_s=0.1,
    connection_counts=(1, 10),
    connection_load_s=0.1,
    growth_rounds=1,
    first_record_rounds=1,
    first_record_count=1,
    first_group_rounds=1,
    group_count=3,
    group_rounds=1,
    group_s=0.1,
    transaction_rounds=1,
    transaction_count=5,
    transaction_s=0.1,
    coordinates_durably=True,
)


def size_text(size_bytes: int) -> str:
    """ "100 B", "1 KB": decimal, as clients' tools count records."""
    return f"{size_bytes // 1_000} KB" if size_bytes >= 1_000 else f"{size_bytes} B"
