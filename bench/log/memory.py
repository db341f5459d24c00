"""Whether memory stays flat as segments grow: a child process writes and reads ever more."""

from __future__ import annotations

import gc

from bench.log.child import run_in_child
from bench.log.lookup import BATCH_BYTES
from bench.log.sizes import MEGABYTE, Sizes, size_text
from bench.log.workload import fill, fresh_directory, make_batches, open_log
from bench.machine import resident_bytes
from bench.table import Goal, Row
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import read_batch_header

#: What the heap may move by without anything growing.
_GOAL = Goal(4.0, is_upper=True)


def measure(parent: str, sizes: Sizes) -> list[Row]:
    small, large = sizes.memory_bytes
    with fresh_directory(parent) as directory:
        before, after = run_in_child(_resident_after, directory, small, large)
    what = f"Memory growth between a log of {size_text(small)} and of {size_text(large)}"
    return [
        Row.single(what, "MB", (after - before) / MEGABYTE, _GOAL, f"{after / MEGABYTE:.0f} in all")
    ]


def _resident_after(directory: str, small_bytes: int, large_bytes: int) -> tuple[int, int]:
    """Resident memory once `small_bytes`, and once `large_bytes` were written and read back."""
    batches = make_batches(BATCH_BYTES)
    log = open_log(directory)
    fill(log, batches, small_bytes)
    _read_all(log)
    gc.collect()
    before = resident_bytes()
    fill(log, batches, large_bytes - small_bytes)
    _read_all(log)
    gc.collect()
    return before, resident_bytes()


def _read_all(log: PartitionLog) -> None:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        region = log.read(offset, MEGABYTE).region
        if region is None:
            raise RuntimeError(f"Offset {offset} is not there to read.")
        data = region.read()
        # Whole batches all of one size, so the last one is found from the end.
        last = len(data) - len(data) % BATCH_BYTES - BATCH_BYTES
        offset = read_batch_header(data, last).next_offset
