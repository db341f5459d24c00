"""Recovering a log after an unclean stop: every batch is read and its checksum computed.

The peer reads the same bytes with the same size of read and computes one checksum over each
stretch: what a recovery costs at least. The log lies in the page cache, as after the end of a
process; after a power failure the disk sets the pace.
"""

from __future__ import annotations

import os
from time import perf_counter

from crc32c import crc32c

from bench.log.lookup import BATCH_BYTES
from bench.log.sizes import MEGABYTE, Sizes, size_text
from bench.log.workload import abandon, fill, fresh_directory, make_batches, open_log
from bench.rounds import Spread
from bench.table import Goal, Row


def measure(parent: str, sizes: Sizes) -> list[Row]:
    batches = make_batches(BATCH_BYTES)
    with fresh_directory(parent) as directory:
        log = open_log(directory)
        fill(log, batches, sizes.segment_bytes)
        log.flush()
        abandon(log)
        path, end_offset, size_bytes = (
            log.segments.active.log.path,
            log.log_end_offset,
            log.size_bytes,
        )
        rates, peer_rates = [], []
        for _ in range(sizes.recovery_count):
            peer_rates.append(size_bytes / 1e9 / _seconds_to_checksum(path))
            # A batch that was being written when the process ended.
            with open(path, "ab") as file:
                file.write(batches[0][: BATCH_BYTES // 2])
            start = perf_counter()
            log = open_log(directory)
            rates.append(size_bytes / 1e9 / (perf_counter() - start))
            if (log.log_end_offset, log.size_bytes) != (end_offset, size_bytes):
                raise RuntimeError("Recovery did not bring back what was written.")
            abandon(log)
    row = Row(
        f"Recover an unclean log of {size_text(size_bytes)} in batches of 16 KB",
        "GB/s",
        Spread.of(rates),
        goal=Goal(0.5),
        note=f"bare `os.pread` and CRC {max(peer_rates):.2f} GB/s",
    )
    return [row]


def _seconds_to_checksum(path: str) -> float:
    descriptor = os.open(path, os.O_RDONLY)
    size_bytes = os.fstat(descriptor).st_size
    start = perf_counter()
    for position in range(0, size_bytes, MEGABYTE):
        crc32c(os.pread(descriptor, MEGABYTE, position))
    seconds = perf_counter() - start
    os.close(descriptor)
    return seconds
