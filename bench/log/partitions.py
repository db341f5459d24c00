"""A broker's directory with thousands of partitions, in a process that may open 1,024 files.

The child process makes the logs through `LogDirectories` as a broker does, appends to each, reads
from each, shuts down cleanly and opens all of them again. The kernel enforces the limit; the most
descriptors that were ever seen open is counted on the way.
"""

from __future__ import annotations

import random
import resource
import uuid
from dataclasses import dataclass
from time import perf_counter

from bench.log.child import run_in_child
from bench.log.sizes import MEGABYTE, Sizes
from bench.log.workload import (
    LEADER_EPOCH,
    NOW_MS,
    fresh_directory,
    make_batches,
    send_again,
)
from bench.machine import descriptor_count, resident_bytes
from bench.table import Goal, Row
from headwater.base.ids import TopicPartition
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig

DESCRIPTORS_MAX = 1024
#: The rest is for sockets, checkpoints and whatever Python opens.
_HANDLE_COUNT = 900
_PARTITIONS_PER_LOOK = 50


@dataclass(slots=True)
class PartitionFigures:
    """What the child saw."""

    descriptors_max: int = 0
    create_seconds: float = 0.0
    append_seconds: float = 0.0
    read_seconds: float = 0.0
    close_seconds: float = 0.0
    reopen_seconds: float = 0.0
    resident_growth_bytes: int = 0

    def look(self) -> None:
        self.descriptors_max = max(self.descriptors_max, descriptor_count())


def measure(parent: str, sizes: Sizes) -> list[Row]:
    count = sizes.partition_count
    with fresh_directory(parent) as directory:
        seen = run_in_child(_use_partitions, directory, count)
    goal = Goal(DESCRIPTORS_MAX, is_upper=True)
    name = f"{count:,} partitions"
    memory = f"{seen.resident_growth_bytes / MEGABYTE:.0f} MB of memory"
    return [
        Row.single(f"{name}: open descriptors", "at most", seen.descriptors_max, goal, memory),
        Row.single(f"{name}: make all", "s", seen.create_seconds),
        Row.single(f"{name}: first append to each", "s", seen.append_seconds),
        Row.single(f"{name}: read from each", "s", seen.read_seconds),
        Row.single(f"{name}: shut down cleanly", "s", seen.close_seconds),
        Row.single(f"{name}: open again", "s", seen.reopen_seconds),
    ]


def _use_partitions(directory: str, partition_count: int) -> PartitionFigures:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS_MAX, DESCRIPTORS_MAX))
    figures = PartitionFigures()
    batch = make_batches(1024, 1)[0]
    resident_before = resident_bytes()
    logs = _open(directory)

    start = perf_counter()
    for number in range(partition_count):
        topic_id = uuid.UUID(int=number // 100 + 1)
        logs.create(TopicPartition(f"topic-{number // 100}", number % 100), topic_id, NOW_MS)
        if number % _PARTITIONS_PER_LOOK == 0:
            figures.look()
    figures.create_seconds = perf_counter() - start

    start = perf_counter()
    for number, log in enumerate(logs):
        log.append_as_leader(send_again(batch), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
        if number % _PARTITIONS_PER_LOOK == 0:
            figures.look()
    figures.append_seconds = perf_counter() - start

    start = perf_counter()
    for number, log in enumerate(logs):
        region = log.read(0, MEGABYTE).region
        if region is None or len(region.read()) != len(batch):
            raise RuntimeError(f"{log.partition} does not hold what was appended to it.")
        if number % _PARTITIONS_PER_LOOK == 0:
            figures.look()
    figures.read_seconds = perf_counter() - start
    figures.resident_growth_bytes = resident_bytes() - resident_before

    start = perf_counter()
    logs.shutdown(broker_epoch=1)
    figures.close_seconds = perf_counter() - start

    start = perf_counter()
    logs = _open(directory)
    figures.reopen_seconds = perf_counter() - start
    figures.look()
    if sum(log.log_end_offset == 1 for log in logs) != partition_count:
        raise RuntimeError("Not all partitions came back with their record.")
    return figures


def _open(directory: str) -> LogDirectories:
    files = DiskFiles()
    config = LogConfig()
    environment = LogEnvironment(
        files, HandleCache(files, _HANDLE_COUNT), random.Random(1), lambda _topic: config
    )
    logs = LogDirectories.open([directory], environment, cluster_id="bench", node_id=1)
    for _ in logs.load(NOW_MS):
        continue
    return logs
