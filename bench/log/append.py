"""Appending: large batches against a bare write loop, and single records for comparison.

Log and file grow side by side, one turn each. When they have their full length they are thrown
away and new ones take their place, so that no more is written than the page cache takes without
waiting for the disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from time import perf_counter

from bench.log.sizes import MEGABYTE, Sizes
from bench.log.workload import (
    LEADER_EPOCH,
    NOW_MS,
    abandon,
    fresh_directory,
    make_batches,
    open_log,
    send_again,
    warm_memory,
)
from bench.rounds import Comparison, alternate
from bench.table import Goal, Row
from headwater.storage.partition_log import PartitionLog

#: What fits into the outer caches: the network has only just brought it.
_LARGE_BATCH_COUNT = 4
_LARGE_PER_ROUND = 16
_GOAL = Goal(0.8)


def measure_large(parent: str, sizes: Sizes) -> list[Row]:
    batches = make_batches(MEGABYTE, _LARGE_BATCH_COUNT)
    per_file = max(1, sizes.stream_bytes // (_LARGE_PER_ROUND * MEGABYTE))
    comparison = Comparison([], [])
    while len(comparison.ours) < sizes.round_count:
        with _sides(parent, batches, _LARGE_PER_ROUND, per_file) as sides:
            rates = alternate(sides.append, sides.write, per_file)
        comparison.ours.extend(rates.ours)
        comparison.peers.extend(rates.peers)
    return [
        Row.compared(
            "Append batches of 1 MB",
            "GB/s",
            comparison.scaled(MEGABYTE / 1e9),
            "`os.write`",
            _GOAL,
        )
    ]


def measure_single_records(parent: str, sizes: Sizes) -> list[Row]:
    batches = make_batches(200)
    with _sides(parent, batches, sizes.small_append_count, sizes.round_count) as sides:
        comparison = alternate(sides.append, sides.write, sizes.round_count)
    return [Row.compared("Append one record at a time", "appends/s", comparison, "`os.write`")]


class Sides:
    """A log and a file that take the same batches; each method returns batches per second."""

    def __init__(
        self, log: PartitionLog, descriptor: int, batches: Sequence[bytearray], per_round: int
    ) -> None:
        self.log = log
        self.descriptor = descriptor
        self.batches = batches
        self.per_round = per_round

    def append(self) -> float:
        append = self.log.append_as_leader
        start = perf_counter()
        for batch in islice(cycle(self.batches), self.per_round):
            append(send_again(batch), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
        return self.per_round / (perf_counter() - start)

    def write(self) -> float:
        write, descriptor = os.write, self.descriptor
        start = perf_counter()
        for batch in islice(cycle(self.batches), self.per_round):
            write(descriptor, batch)
        return self.per_round / (perf_counter() - start)


@contextlib.contextmanager
def _sides(
    parent: str, batches: Sequence[bytearray], per_round: int, round_count: int
) -> Iterator[Sides]:
    with fresh_directory(parent) as directory:
        warm_memory(directory, 2 * round_count * per_round * len(batches[0]))
        log = open_log(f"{directory}/bench-0")
        descriptor = os.open(f"{directory}/file", os.O_WRONLY | os.O_CREAT)
        # The first batch of an epoch writes a checkpoint, which the peer has no equivalent of.
        log.append_as_leader(send_again(batches[0]), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
        os.write(descriptor, batches[0])
        yield Sides(log, descriptor, batches, per_round)
        abandon(log)
        os.close(descriptor)
