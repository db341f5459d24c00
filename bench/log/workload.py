"""The batches and logs that are measured.

Batches are what a producer sends: records of a kilobyte, uncompressed, with a valid checksum. Each
is a `bytearray`, as the network layer hands them over. A leader patches offsets into it, so before
it is appended again it must be made a producer's batch again: see `send_again`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence

from bench.log.sizes import MEGABYTE
from headwater.base.ids import TopicPartition
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.records import Record, encode_batch

PARTITION = TopicPartition("bench", 0)
NOW_MS = 1_700_000_000_000
LEADER_EPOCH = 1
#: Many enough that they do not all stay in the caches nearest to a core.
BATCH_POOL_SIZE = 16
_RECORD_BYTES = 1024
_VALUE_OVERHEAD_MAX = 32
_write_base_offset = struct.Struct(">q").pack_into


def make_batches(size_bytes: int, count: int = BATCH_POOL_SIZE) -> list[bytearray]:
    """Batches of exactly this size, all with the same number of records."""
    return [_make_batch(size_bytes) for _ in range(count)]


def _make_batch(size_bytes: int) -> bytearray:
    record_count = max(1, size_bytes // _RECORD_BYTES)
    value_size = size_bytes // record_count - _VALUE_OVERHEAD_MAX
    records = [
        Record(number, NOW_MS, None, os.urandom(value_size)) for number in range(record_count)
    ]
    # The last value takes what is missing; its length's own encoding may grow with it.
    for _ in range(3):
        missing = size_bytes - len(encode_batch(records))
        last = records[-1]
        value = (last.value or b"")[: len(last.value or b"") + min(missing, 0)]
        records[-1] = last._replace(value=value + os.urandom(max(missing, 0)))
    batch = bytearray(encode_batch(records))
    if len(batch) != size_bytes:
        raise ValueError(f"No batch has {size_bytes} bytes, the nearest has {len(batch)}.")
    return batch


def send_again(batch: bytearray) -> bytearray:
    """The batch as a producer sends it, after a leader has patched it."""
    _write_base_offset(batch, 0, 0)
    return batch


def open_log(
    directory: str, config: LogConfig | None = None, *, is_clean: bool = False
) -> PartitionLog:
    files = DiskFiles()
    return LogLoader(
        PARTITION,
        directory,
        config or LogConfig(),
        files,
        HandleCache(files, 64),
        now_ms=NOW_MS,
        is_clean=is_clean,
    ).load()


def fill(log: PartitionLog, batches: Sequence[bytearray], size_bytes: int) -> None:
    """Append batches in turn until `size_bytes` are written."""
    batch_bytes = len(batches[0])
    for batch in itertools.islice(itertools.cycle(batches), size_bytes // batch_bytes):
        log.append_as_leader(send_again(batch), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)


def abandon(log: PartitionLog) -> None:
    """Close a log's files as the end of a process would, with nothing made durable."""
    for segment in log.segments:
        segment.close()


def warm_memory(parent: str, size_bytes: int) -> None:
    """Let the kernel have free memory at hand that was in use a moment ago.

    In a virtual machine, memory that is used for the first time is ten times as slow to write as
    memory that was used before, for the host must find it first. A file that is written and removed
    leaves behind what the next one will be given.
    """
    block = bytes(MEGABYTE)
    path = f"{parent}/warmth"
    with open(path, "wb", buffering=0) as file:
        for _ in range(size_bytes // MEGABYTE + 1):
            file.write(block)
    os.remove(path)


@contextlib.contextmanager
def fresh_directory(parent: str) -> Iterator[str]:
    """A directory for one round, gone afterwards, with nothing left for the disk to write.

    The files are removed before the sync, so that most of their pages never reach the disk.
    """
    directory = tempfile.mkdtemp(dir=parent)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
        os.sync()
