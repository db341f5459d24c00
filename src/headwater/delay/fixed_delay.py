"""A topic whose consumers see everything a fixed time after it was appended.

Nothing is wrapped or copied: the log is what it always is, and consumers read up to where its
append times are old enough (`PartitionLog.shown_end`). What was shown stays shown, whatever becomes
of `delay.ms`: the place only moves forward here, it is kept on disk (`shown_place`), and followers,
who have one by their own clocks, are told their leader's with what they fetch.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from headwater.delay.partition_delays import DelayEnvironment
from headwater.delay.shown_place import ShownPlace
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

    def __init__(
        self, partition: Partition, environment: DelayEnvironment, *, was_shown: bool
    ) -> None:
        """`was_shown` says that until now consumers saw all of the log."""
        self._partition = partition
        self._environment = environment
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        self._place = ShownPlace(partition, environment)
        self._log = log = partition.log
        self._delay_ms = log.config.delay.fixed_ms
        if was_shown:
            log.shown_end = log.high_watermark
            self._place.keep_now()
        else:
            log.shown_end = self._first_place()

    def _first_place(self) -> int:
        """Where a broker that starts goes on: by its clock, but not in front of where it was."""
        log, kept = self._log, self._place.read()
        shown_until_ms = self._environment.clock.wall_ms() - self._delay_ms
        found = log.offset_for_timestamp(shown_until_ms + 1)
        end = log.log_end_offset
        by_clock = end if found is None else found.offset
        if kept is not None and kept > end:
            self._place.keep_now()  # The disk has lost what lay there, and other records come.
        return by_clock if kept is None else min(max(by_clock, kept), end)

    def start(self) -> None:
        self._place.start()
        name = f"fixed delay of {self._partition.topic_partition}"
        self._task = self._environment.tasks.start(name, self._run())

    def wake(self) -> None:
        """The log has grown, or its settings have changed."""
        self._wake.set()

    def truncated(self) -> None:
        """The place that is kept may not be there any more: the log has moved its own."""
        self._place.keep_now()

    def log_start_raised(self) -> None:
        """Nothing in front of it is looked at."""

    def log_replaced(self) -> None:
        """The log lies in another directory now."""
        replaced, self._log = self._log, self._partition.log
        self._log.shown_end = replaced.shown_end
        self._place.log_replaced()

    async def close(self) -> None:
        self._is_closing = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._place.close()

    async def _run(self) -> None:
        while not self._is_closing and not self._partition.is_removed:
            pause_s = self._show()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)
        self._place.keep_now()  # Or it finds that the partition is gone.

    def _show(self) -> float:
        """Show what is old enough; in how many seconds the next may be."""
        partition, log = self._partition, self._partition.log
        rules = log.config.delay
        if rules.mode is not DelayMode.FIXED:
            if log.shown_end is not None:
                log.shown_end = None
                partition.shows_more()
            return 3600.0
        if rules.fixed_ms > self._delay_ms or log.shown_end is None:
            self._place.keep_now()
        self._delay_ms = rules.fixed_ms
        # If the mode was another one until now all was shown.
        shown = log.high_watermark if log.shown_end is None else log.shown_end
        begun = shown = max(shown, log.log_start_offset)
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
