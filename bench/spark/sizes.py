"""How much is measured. Full is for the record, quick for a look, tiny for the benchmark's test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.broker.sizes import MEGABYTE

SMALL_RECORD_BYTES, LARGE_RECORD_BYTES = 100, 1_000


@dataclass(frozen=True, slots=True)
class Sizes:
    #: Turns that each side takes in a comparison.
    rounds: int
    #: Turns that nobody counts, in which Java compiles and Python's workers start.
    warm_up_rounds: int
    #: What lies in a topic that is read, by the size of its records.
    read_bytes: Mapping[int, int]
    #: How many rows are written, by the size of their values.
    written_rows: Mapping[int, int]
    #: Micro-batches: for how long records come, how far apart, and those that nobody counts.
    latency_s: float
    latency_interval_s: float
    latency_warm_up_s: float
    latency_rounds: int


FULL = Sizes(
    rounds=7,
    warm_up_rounds=2,
    read_bytes={SMALL_RECORD_BYTES: 400 * MEGABYTE, LARGE_RECORD_BYTES: 1_000 * MEGABYTE},
    written_rows={SMALL_RECORD_BYTES: 2_000_000, LARGE_RECORD_BYTES: 500_000},
    latency_s=30.0,
    latency_interval_s=0.05,
    latency_warm_up_s=10.0,
    latency_rounds=3,
)
QUICK = Sizes(
    rounds=3,
    warm_up_rounds=1,
    read_bytes={SMALL_RECORD_BYTES: 150 * MEGABYTE, LARGE_RECORD_BYTES: 300 * MEGABYTE},
    written_rows={SMALL_RECORD_BYTES: 500_000, LARGE_RECORD_BYTES: 150_000},
    latency_s=10.0,
    latency_interval_s=0.05,
    latency_warm_up_s=5.0,
    latency_rounds=2,
)
TINY = Sizes(
    rounds=1,
    warm_up_rounds=0,
    read_bytes={SMALL_RECORD_BYTES: MEGABYTE // 10},
    written_rows={SMALL_RECORD_BYTES: 1_000},
    latency_s=0.5,
    latency_interval_s=0.1,
    latency_warm_up_s=0.2,
    latency_rounds=1,
)
