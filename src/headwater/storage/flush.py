"""Making a log durable: how far it is, what a flush covers, and how many writers share one.

Two offsets tell how far a log is safe. `flushed_offset`: every record in front of it is on disk,
which is what an acknowledgement may rest on. `recovery_point`: recovery after a crash starts at the
segment that holds it; it is the one that the checkpoint file keeps. They differ because a flush of
the active segment syncs its log file alone. Its indexes are rebuilt by recovery, so they need no
sync until the segment is sealed; until then the recovery point stays at or below its base. Neither
goes beyond the last record, though the log's end may lie behind it, in a gap: a recovery point
there could fall into the next segment, and the end of this one would be taken on trust.

A flush is split in three so that a thread does the waiting while only the owner of the log touches
its state: `Durability.plan` says what to sync, `FlushPlan.run` syncs it anywhere,
`Durability.complete` takes note. *Shared fsync* builds on that: whoever waits for an offset joins
the round under way if it covers the offset, else the next one, so that any number of waiting
writers costs one sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headwater.base.threads import RunInThread
from headwater.storage.disk.files import FileSystem
from headwater.storage.errors import is_exhaustion
from headwater.storage.producers.snapshot import sync_snapshot
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList

if TYPE_CHECKING:
    from headwater.storage.partition_log import PartitionLog

#: After that a sync is tried again for which there was no descriptor.
EXHAUSTED_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """What must be synced for a log to be durable up to `offset`."""

    offset: int
    #: A plan made before a truncation proves nothing after it.
    truncation_count: int
    #: Segments sealed since the last flush, whose indexes are synced too.
    sealed: tuple[LogSegment, ...]
    active: LogSegment
    files: FileSystem
    directory: str | None

    def run(self) -> None:
        """Sync data first, names last: a durable name never leads to less than was there."""
        # A log that is closed counts its active segment among the sealed ones.
        for segment in dict.fromkeys((*self.sealed, self.active)):
            try:
                if segment in self.sealed:
                    segment.sync()
                    sync_snapshot(self.files, segment.directory, segment.next_offset)
                else:
                    segment.log.sync()
            except OSError:
                if not segment.is_removed:  # Retention may have been faster than this thread.
                    raise
        if self.directory is not None:
            self.files.sync_dir(self.directory)


class Durability:
    """How much of one log is on disk."""

    def __init__(self, files: FileSystem, directory: str, flushed_offset: int) -> None:
        self.flushed_offset = flushed_offset
        self._files = files
        self._directory = directory
        #: Sealed segments whose files are not durable, oldest first: they hold the recovery point.
        self._unsynced_sealed: list[LogSegment] = []
        self._directory_changed = True
        self.truncation_count = 0
        self._clean_end_offset: int | None = None

    @property
    def recovery_point(self) -> int:
        if self._unsynced_sealed:
            return min(self.flushed_offset, self._unsynced_sealed[0].base_offset)
        return self.flushed_offset

    def segment_sealed(self, segment: LogSegment) -> None:
        self._unsynced_sealed.append(segment)

    def directory_changed(self) -> None:
        """A name came, went or moved, and is not durable until the directory is synced."""
        self._directory_changed = True

    def directory_moved(self, directory: str) -> None:
        self._directory = directory

    def plan(self, segments: SegmentList) -> FlushPlan:
        return FlushPlan(
            offset=segments.active.next_offset,
            truncation_count=self.truncation_count,
            sealed=tuple(self._unsynced_sealed),
            active=segments.active,
            files=self._files,
            directory=self._directory if self._take_directory_changed() else None,
        )

    def _take_directory_changed(self) -> bool:
        # Cleared when the plan is made: a change during the sync needs another one.
        changed, self._directory_changed = self._directory_changed, False
        return changed

    def complete(self, plan: FlushPlan) -> None:
        """The plan ran without an error."""
        if plan.truncation_count != self.truncation_count:
            self._directory_changed = True
            return
        self._unsynced_sealed = [s for s in self._unsynced_sealed if s not in plan.sealed]
        self.flushed_offset = max(self.flushed_offset, plan.offset)

    def skip_to(self, offset: int) -> None:
        """All is flushed, and there are no records from there to `offset`."""
        self.flushed_offset = max(self.flushed_offset, offset)

    def truncated(self, segments: SegmentList) -> None:
        self.truncation_count += 1
        self._directory_changed = True
        self._unsynced_sealed = [s for s in self._unsynced_sealed if s in segments.sealed]
        self.flushed_offset = min(self.flushed_offset, segments.active.next_offset)

    def opened_clean(self, end_offset: int) -> None:
        """The log is as it was closed: all of it is on disk."""
        self._directory_changed = False
        self._clean_end_offset = end_offset

    def has_changed(self, end_offset: int) -> bool:
        """Whether there is anything to sync since the log was opened clean, if it was."""
        return (
            self._clean_end_offset != end_offset
            or self.truncation_count > 0
            or self._directory_changed
            or bool(self._unsynced_sealed)
        )

    def recovered(self, sealed: Sequence[LogSegment], flushed_offset: int) -> None:
        """Recovery rebuilt the indexes of these; records are on disk as far as they were."""
        self._unsynced_sealed += sealed
        self.flushed_offset = max(self.flushed_offset, flushed_offset)

    def replaced(self, old: Sequence[LogSegment]) -> None:
        """Compaction put durable segments in the place of these."""
        self._unsynced_sealed = [s for s in self._unsynced_sealed if s not in old]


class SharedFsync:
    """Lets writers wait until what they wrote is durable, with one fsync for all who wait."""

    def __init__(self, log: PartitionLog, run_in_thread: RunInThread) -> None:
        self._log = log
        self._run_in_thread = run_in_thread
        self._round: asyncio.Task[None] | None = None
        self.round_count = 0

    async def wait_until_durable(self, offset: int) -> None:
        """Return once every record in front of `offset` is on disk; LogStorageError if it fails."""
        log = self._log
        while log.flushed_offset < min(offset, log.record_end_offset):
            if self._round is None:
                self._round = asyncio.get_running_loop().create_task(self._sync_once())
            # A waiter that is cancelled must not take the sync away from the others.
            await asyncio.shield(self._round)

    async def _sync_once(self) -> None:
        try:
            self.round_count += 1
            plan = self._log.plan_flush()
            try:
                await self._run_in_thread(plan.run)
            except OSError as error:
                if not is_exhaustion(error):
                    raise self._log.fail(error) from error
                # Nothing was synced, and nothing is lost: whoever waits has another round.
                self._log.durability.directory_changed()
                await asyncio.sleep(EXHAUSTED_PAUSE_S)
            else:
                self._log.complete_flush(plan)
        finally:
            self._round = None
