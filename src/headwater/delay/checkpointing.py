"""Checkpoints of what waits in a partition, made now and then and when its broker stops.

A checkpoint counts when its place cannot be cut off any more. Nothing waits for it: a disk that
syncs slowly makes no message late.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.delay.delay_state import DelayState
from headwater.delay.index.checkpoint import CheckpointPlan
from headwater.replication.partition.partition import Partition

_CHECKPOINT_INTERVAL_MS: Final = 10_000


class Checkpointing:
    """Of one partition; the owner is its `PartitionDelays`."""

    def __init__(self, partition: Partition, clock: Clock, run_in_thread: RunInThread) -> None:
        self._partition = partition
        self._clock = clock
        self._run_in_thread = run_in_thread
        self._saved_ms = clock.monotonic_ms()
        self._saved_offset = -1
        #: Planned, and not written before the high watermark has reached its offset.
        self._planned: tuple[CheckpointPlan, int] | None = None
        self._writing: asyncio.Task[None] | None = None

    def resumed(self, saved_offset: int) -> None:
        """The state was read anew from a checkpoint, or from nothing (-1)."""
        self._planned = None
        self._saved_offset = saved_offset

    async def save_if_due(self, state: DelayState) -> None:
        """Begin a checkpoint if it is time for one; OSError if the last one failed."""
        if self._writing is not None:
            if not self._writing.done():
                return
            writing, self._writing = self._writing, None
            await writing
        now_ms = self._clock.monotonic_ms()
        if self._planned is None:
            if now_ms - self._saved_ms < _CHECKPOINT_INTERVAL_MS:
                return
            self._saved_ms = now_ms
            if state.applied_offset == self._saved_offset:
                return
            self._plan(state)
        if self._planned is not None and self._planned[1] <= self._partition.high_watermark:
            self._writing = asyncio.ensure_future(self.save(state))

    def _plan(self, state: DelayState) -> None:
        state.forget_old_ids()
        plan = state.index.plan_checkpoint(state.as_json(), state.applied_offset)
        self._planned = (plan, state.applied_offset)

    async def save(self, state: DelayState) -> None:
        """Write the checkpoint that was planned."""
        if self._planned is None:
            return
        plan, offset = self._planned
        self._planned = None
        saved_before = self._saved_offset
        try:
            await self._run_in_thread(plan.run)
        except BaseException:
            state.index.abandon_checkpoint(plan)
            raise
        state.index.complete_checkpoint(plan)
        if self._saved_offset == saved_before:  # Nothing was read anew meanwhile.
            self._saved_offset = offset

    async def save_last(self, state: DelayState) -> None:
        """The broker stops: what was read now need not be read again."""
        if self._planned is not None:
            state.index.abandon_checkpoint(self._planned[0])
            self._planned = None
        if self._saved_offset != state.applied_offset <= self._partition.high_watermark:
            self._plan(state)
            await self.save(state)

    async def settle(self) -> None:
        """Let a checkpoint that is being written come to an end, however it does."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.gather(writing, return_exceptions=True)
