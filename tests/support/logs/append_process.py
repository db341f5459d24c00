"""Appends to a log until it is killed: `python -m tests.support.logs.append_process`.

Arguments: the log's directory, and the first of the producer ids that it may use. Several writers
append at once and share their syncs. When a writer's record is durable, and not before, a line on
the standard output says so: its offset and its value.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from headwater.sim.campaigns.logs import append_numbered, open_log
from headwater.storage.disk.files import DiskFiles, write_atomically
from headwater.storage.flush import SharedFsync
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog

#: Small, so that a short life sees segments and indexes come.
CONFIG = LogConfig(segment_bytes=8_000, index_interval_bytes=500)
WRITER_COUNT = 4
#: A writer gives up by itself, should nobody ever kill it.
RECORDS_PER_WRITER_MAX = 5_000


def open_where_it_was_left(directory: str) -> PartitionLog:
    """As after an unclean stop, with the recovery point that was kept beside the directory."""
    kept = Path(_recovery_point_path(directory))
    recovery_point = int(kept.read_text()) if kept.exists() else 0
    return open_log(DiskFiles(), directory, CONFIG, recovery_point=recovery_point)


def _recovery_point_path(directory: str) -> str:
    return f"{directory}.recovery-point"


async def _write(log: PartitionLog, shared: SharedFsync, directory: str, producer_id: int) -> None:
    for sequence in range(RECORDS_PER_WRITER_MAX):
        value = b"%d-%d-" % (producer_id, sequence) + b"x" * (sequence * 37 % 200)
        result = append_numbered(log, sequence, value, producer_id=producer_id)
        await shared.wait_until_durable(result.last_offset + 1)
        os.write(sys.stdout.fileno(), b"%d %b\n" % (result.base_offset, value))
        if sequence % 25 == 24:
            recovery_point = b"%d" % log.recovery_point
            write_atomically(log.files, _recovery_point_path(directory), recovery_point)


async def _main(directory: str, first_producer_id: int) -> None:
    log = open_where_it_was_left(directory)
    shared = SharedFsync(log, asyncio.to_thread)
    producer_ids = range(first_producer_id, first_producer_id + WRITER_COUNT)
    await asyncio.gather(*(_write(log, shared, directory, each) for each in producer_ids))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
