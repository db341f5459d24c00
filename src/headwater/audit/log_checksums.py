"""What a replica holds, in a few numbers: chains of checksums over batch headers, by offsets.

A batch counts with its first offset, its number of records and the checksum that its producer made;
the records themselves are not read, so a byte that turned on the disk is found by `headwater log
verify`, and not here. Where a run ends is decided by offsets alone, so replicas whose logs are the
same answer the same, however their segments are cut.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple
from zlib import crc32

from headwater.audit.header_scan import plan_header_scan
from headwater.base.threads import RunInThread
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import BatchHeader

#: One answer tells of no more.
RUNS_MAX: Final = 10_000
BATCHES_MAX: Final = 50_000

_LINK: Final = struct.Struct(">qiI")


class Run(NamedTuple):
    from_offset: int
    to_offset: int
    batch_count: int
    checksum: int


class LogChecksums:
    """Runs of a log from an offset on, as far as headers were added."""

    def __init__(self, from_offset: int, run_offsets: int) -> None:
        self._run_offsets = run_offsets
        #: Which of the stretches of `run_offsets` the last run is.
        self._number = -1
        self._batch_count = 0
        self.runs: list[Run] = []
        self.next_offset = from_offset
        self.is_full = False

    def add(self, headers: Iterable[BatchHeader], next_offset: int) -> None:
        """Headers that follow those that were added, up to `next_offset` or until it is full."""
        for header in headers:
            number = header.base_offset // self._run_offsets
            is_new = number != self._number
            # By batches and runs alone, so that all replicas stop at the same one.
            if self._batch_count >= BATCHES_MAX or (is_new and len(self.runs) >= RUNS_MAX):
                self.is_full = True
                self.next_offset = header.base_offset
                return
            self._number = number
            run = Run(header.base_offset, 0, 0, 0) if is_new else self.runs.pop()
            link = _LINK.pack(header.base_offset, header.record_count, header.crc & 0xFFFFFFFF)
            checksum = crc32(link, run.checksum)
            self.runs.append(
                Run(run.from_offset, header.next_offset, run.batch_count + 1, checksum)
            )
            self._batch_count += 1
        self.next_offset = next_offset


async def read_checksums(
    log: PartitionLog, checksums: LogChecksums, upper_offset: int, run_in_thread: RunInThread
) -> None:
    """Read on up to `upper_offset`, or until one answer is full; raises OSError, `LogError`."""
    while checksums.next_offset < upper_offset and not checksums.is_full:
        scan = plan_header_scan(log, checksums.next_offset, upper_offset)
        if scan is None:
            checksums.add((), upper_offset)
            return
        found = await run_in_thread(scan.run)
        if found.next_offset <= checksums.next_offset:
            # A batch reaches over the end of what was asked for.
            checksums.add((), upper_offset)
            return
        checksums.add(found.headers, found.next_offset)
