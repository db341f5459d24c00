"""A broker's log directories for tests."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.logs import NOW_MS, batch_of
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LogDirectory
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog

T = TypeVar("T")

CLUSTER_ID = "cluster-1"
NODE_ID = 1
TOPIC_ID = uuid.UUID("53852b42-3a0c-4110-a48c-17179c730202")


def environment_of(
    files: FileSystem, config: LogConfig | None = None, *, handle_count: int = 32, seed: int = 0
) -> LogEnvironment:
    shared = config or LogConfig()
    return LogEnvironment(
        files, HandleCache(files, handle_count), random.Random(seed), lambda _topic: shared
    )


def open_directory(
    files: FileSystem, path: str, config: LogConfig | None = None, *, now_ms: int = NOW_MS
) -> LogDirectory:
    directory = LogDirectory(path, environment_of(files, config))
    directory.open(cluster_id=CLUSTER_ID, node_id=NODE_ID)
    for _ in directory.load(now_ms):
        continue
    return directory


def open_directories(
    files: FileSystem,
    paths: Sequence[str],
    config: LogConfig | None = None,
    *,
    now_ms: int = NOW_MS,
    seed: int = 0,
    load: bool = True,
) -> LogDirectories:
    environment = environment_of(files, config, seed=seed)
    directories = LogDirectories.open(paths, environment, cluster_id=CLUSTER_ID, node_id=NODE_ID)
    if load:
        for _ in directories.load(now_ms):
            continue
    return directories


def append(log: PartitionLog, *values: bytes, now_ms: int = NOW_MS, leader_epoch: int = 0) -> None:
    log.append_as_leader(
        batch_of(*values, timestamp=now_ms), leader_epoch=leader_epoch, now_ms=now_ms
    )


def orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


async def run_inline(work: Callable[[], T]) -> T:
    """What stands for a thread in tests."""
    return work()
