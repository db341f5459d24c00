"""How fast a pass of compaction goes, over a log in which most records are outdated."""

from __future__ import annotations

import os
import random
from time import perf_counter

from bench.log.sizes import MEGABYTE, Sizes, size_text
from bench.log.workload import LEADER_EPOCH, NOW_MS, fresh_directory, open_log
from bench.table import Row
from headwater.base.clocks import SystemClock
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CompactionJob, SegmentExtent
from headwater.storage.disk.files import DiskFiles
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import Record, encode_batch

_VALUE_BYTES = 1000
_RECORDS_PER_BATCH = 16
#: Each key is written about this often.
_WRITES_PER_KEY = 10


def measure(parent: str, sizes: Sizes) -> list[Row]:
    with fresh_directory(parent) as directory:
        log = open_log(directory, LogConfig(cleanup_policy=frozenset({"compact"})))
        _write_outdated(log, sizes.compaction_bytes)
        log.roll(NOW_MS)
        log.flush()
        record_count, size_bytes = log.log_end_offset, log.size_bytes
        start = perf_counter()
        for _ in compact(_job_of(log), DiskFiles(), SystemClock()):
            continue
        seconds = perf_counter() - start
        log.close()
    row = Row.single(
        f"Compact {size_text(sizes.compaction_bytes)} of records of 1 KB",
        "MB/s",
        size_bytes / MEGABYTE / seconds,
        note=f"{record_count / seconds:,.0f} records/s",
    )
    return [row]


def _write_outdated(log: PartitionLog, size_bytes: int) -> None:
    source = random.Random(1)
    value = os.urandom(_VALUE_BYTES)
    record_count = size_bytes // (_VALUE_BYTES + 20)
    key_count = max(1, record_count // _WRITES_PER_KEY)
    for _ in range(record_count // _RECORDS_PER_BATCH):
        records = [
            Record(number, NOW_MS, b"key-%d" % source.randrange(key_count), value)
            for number in range(_RECORDS_PER_BATCH)
        ]
        log.append_as_leader(
            bytearray(encode_batch(records)), leader_epoch=LEADER_EPOCH, now_ms=NOW_MS
        )


def _job_of(log: PartitionLog) -> CompactionJob:
    """All sealed segments, of which none has been compacted before."""
    extents = tuple(
        SegmentExtent(
            segment.base_offset,
            segment.next_offset,
            segment.size_bytes,
            segment.offset_index.size_bytes,
            segment.time_index.size_bytes,
        )
        for segment in log.segments.sealed
    )
    return CompactionJob(
        directory=log.directory,
        config=log.config,
        segments=extents,
        first_dirty_offset=0,
        end_offset=extents[-1].next_offset,
        later_base_offsets=(),
        active_producers={},
        now_ms=NOW_MS,
    )
