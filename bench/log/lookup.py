"""Finding an offset in a large segment, while it is written and when it is sealed."""

from __future__ import annotations

import random
from time import perf_counter_ns

from bench.log.sizes import MEGABYTE, Sizes, size_text
from bench.log.workload import NOW_MS, fill, fresh_directory, make_batches, open_log
from bench.rounds import Spread, percentile
from bench.table import Goal, Row
from headwater.storage.partition_log import PartitionLog

BATCH_BYTES = 16 * 1024
_GOAL = Goal(20.0, is_upper=True)


def measure(parent: str, sizes: Sizes) -> list[Row]:
    size = size_text(sizes.segment_bytes)
    with fresh_directory(parent) as directory:
        log = open_log(directory)
        fill(log, make_batches(BATCH_BYTES), sizes.segment_bytes)
        if len(log.segments) != 1:
            raise RuntimeError("The log was to have one segment, or lookups are too easy.")
        log.flush()
        active = _lookup_row(f"Find an offset in an active segment of {size}", log, sizes)
        log.roll(NOW_MS)
        sealed = _lookup_row(f"Find an offset in a sealed segment of {size}", log, sizes)
        log.close()
    return [active, sealed]


def _lookup_row(what: str, log: PartitionLog, sizes: Sizes) -> Row:
    source = random.Random(1)
    durations_us = []
    for _ in range(sizes.lookup_count):
        offset = source.randrange(log.log_end_offset)
        start = perf_counter_ns()
        log.read(offset, MEGABYTE)
        durations_us.append((perf_counter_ns() - start) / 1000)
    median = percentile(durations_us, 0.5)
    slow = percentile(durations_us, 0.99)
    return Row(what, "us", Spread(median, median, median), goal=_GOAL, note=f"p99 {slow:.1f} us")
