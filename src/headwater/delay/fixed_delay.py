"""A topic whose consumers see everything a fixed time after it was appended.

Nothing is wrapped or copied: the log is what it always is, and consumers read up to where its
append times are old enough (`PartitionLog.shown_end`). That place only moves forward while this
broker leads; what was shown stays shown.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from headwater.delay.partition_delays import DelayEnvironment
from headwater.replication.partition.partition import Partition
from headwater.storage.log_config import DelayMode
from headwater.wire.records import HEADER_SIZE
from headwater.wire.records.batch_header import read_batch_header

#: A clock may be set, and a new leader has to find its place.
_LOOK_INTERVAL_S: Final = 1.0
#: So many batches are shown before others get their turn.
_BATCHES_AT_ONCE: Final = 1_000


class FixedDelay:
    """Of one partition: `start`, then it works until `close`."""

    def __init__(self, partition: Partition, environment: DelayEnvironment) -> None:
        self._partition = partition
        self._environment = environment
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        partition.log.shown_end = self._first_place()

    def _first_place(self) -> int:
        """Where a broker that starts goes on: the time index knows, so nothing is hidden again."""
        log = self._partition.log
        shown_until_ms = self._environment.clock.wall_ms() - log.config.delay.fixed_ms
        found = log.offset_for_timestamp(shown_until_ms + 1)
        return log.log_end_offset if found is None else found.offset

    def start(self) -> None:
        name = f"fixed delay of {self._partition.topic_partition}"
        self._task = self._environment.tasks.start(name, self._run())

    def wake(self) -> None:
        """The log has grown, or its settings have changed."""
        self._wake.set()

    def truncated(self) -> None:
        """What is shown lies in front of the high watermark, which nothing is cut from."""

    def log_start_raised(self) -> None:
        """Nothing in front of it is looked at."""

    def log_replaced(self) -> None:
        """The log lies in another directory now."""
        self._partition.log.shown_end = self._first_place()

    async def close(self) -> None:
        self._is_closing = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while not self._is_closing and not self._partition.is_removed:
            pause_s = self._show()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)

    def _show(self) -> float:
        """Show what is old enough; in how many seconds the next may be."""
        partition, log = self._partition, self._partition.log
        rules = log.config.delay
        if rules.mode is not DelayMode.FIXED:
            if log.shown_end is not None:
                log.shown_end = None
                partition.shows_more()
            return 3600.0
        shown = log.shown_end
        shown = log.log_start_offset if shown is None else max(shown, log.log_start_offset)
        begun = shown
        shown_until_ms = self._environment.clock.wall_ms() - rules.fixed_ms
        pause_s = _LOOK_INTERVAL_S
        for _ in range(_BATCHES_AT_ONCE):
            if shown >= log.high_watermark:
                break
            segment = log.segments[max(log.segments.floor_number(shown), 0)]
            found = segment.find(shown)
            if found is None:
                following = log.segments.next_base_offset(segment)
                shown = log.high_watermark if following is None else following
                continue
            header = read_batch_header(segment.log.read_at(found.position, HEADER_SIZE))
            if header.max_timestamp > shown_until_ms:
                left_ms = header.max_timestamp - shown_until_ms
                pause_s = min(left_ms / 1000, _LOOK_INTERVAL_S)
                break
            shown = header.next_offset
        else:
            pause_s = 0.001
        log.shown_end = shown
        if shown > begun:
            partition.shows_more()
        return pause_s
