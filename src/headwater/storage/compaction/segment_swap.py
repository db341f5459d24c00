"""Putting a compacted segment in the place of old ones, so that a crash at any moment is safe.

The disk may keep any of the renames since the last sync of the directory and forget the others. So
there is such a sync between any two steps that depend on each other:

1. `.cleaned` becomes `.swap`. The content is durable already; once the names are too, a crash is
   followed by finishing the swap, see `interrupted_changes`.
2. The old segments become `.deleted`. In memory the new one takes their place at the same moment,
   so readers never see the log without one or the other.
3. `.swap` becomes live. This must not be on disk before step 2 is: an old segment that came back
   beside a new one which covers it would be part of the log again.

A swap waits for the disk while the log goes on. Appends do not matter to it, they go to the active
segment. Whatever else changes the segments (truncation, retention, moving or deleting the log) must
first `finish` a swap that is under way; the last chance to refuse one is before step 1. It is
refused if an old segment is not what it was when the job began: the `CompactionTicket` knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headwater.base.threads import RunInThread
from headwater.storage.compaction.cleaned_segment import remove_files_at
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.partition_log import PartitionLog
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import (
    CLEANED,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    segment_path,
)


@dataclass(frozen=True, slots=True)
class CompactionTicket:
    """What a log's segments were when compaction began to read them."""

    log: PartitionLog
    directory: str
    segments: tuple[LogSegment, ...]
    sizes_bytes: tuple[int, ...]
    truncation_count: int

    @classmethod
    def take(cls, log: PartitionLog, segments: Sequence[LogSegment]) -> CompactionTicket:
        return cls(
            log,
            log.directory,
            tuple(segments),
            tuple(segment.size_bytes for segment in segments),
            log.durability.truncation_count,
        )

    @property
    def base_offsets(self) -> tuple[int, ...]:
        return tuple(segment.base_offset for segment in self.segments)

    def is_valid(self, base_offsets: Collection[int]) -> bool:
        """Whether the segments at these offsets are still part of the log, as they were."""
        log = self.log
        return (
            log.failure is None
            and log.directory == self.directory
            and log.durability.truncation_count == self.truncation_count
            and all(
                log.segments.get(segment.base_offset) is segment and segment.size_bytes == size
                for segment, size in zip(self.segments, self.sizes_bytes, strict=True)
                if segment.base_offset in base_offsets
            )
        )


class SegmentSwap:
    """One new segment's way into its log.

    Its owner is the log's; only the waiting for the disk is done elsewhere.
    """

    def __init__(self, ticket: CompactionTicket, group: CleanedGroup, now_ms: int) -> None:
        self._log = ticket.log
        self._ticket = ticket
        self._group = group
        self._now_ms = now_ms
        self._steps = self._run()
        self._step_count = 0
        self.is_done = False
        #: Whether the log has the new segment now.
        self.is_in_place = False

    # -- driving ---------------------------------------------------------------------------------

    def finish(self) -> bool:
        """Do all that is left, here and now; returns whether the new segment is in place."""
        self._begin()
        while not self.is_done:
            try:
                self._log.files.sync_dir(self._log.directory)
            except OSError as error:
                raise self._log.fail(error) from error
            self._advance()
        return self.is_in_place

    async def finish_in(self, run_in_thread: RunInThread) -> bool:
        """The same, with a thread that waits for the disk."""
        log = self._log
        self._begin()
        while not self.is_done:
            step_count = self._step_count
            try:
                await run_in_thread(partial(log.files.sync_dir, log.directory))
            except OSError as error:
                if log.failure is not None:
                    raise log.failure from error
                raise log.fail(error) from error
            if step_count == self._step_count:  # Otherwise somebody has finished it meanwhile.
                self._advance()
        return self.is_in_place

    def _begin(self) -> None:
        if self._step_count == 0:
            self._log.unfinished = self
            self._advance()

    def _advance(self) -> None:
        """The next step: all that was renamed so far is durable."""
        self._step_count += 1
        try:
            self.is_done = next(self._steps, None) is None
        except OSError as error:
            self.is_done = True
            raise self._log.fail(error) from error
        finally:
            if self.is_done:
                self._log.unfinished = None

    # -- steps -----------------------------------------------------------------------------------

    def _run(self) -> Iterator[bool]:
        """Each yield asks for the directory to be synced."""
        log, group = self._log, self._group
        if not self._ticket.is_valid(group.old_base_offsets):
            self._throw_away(CLEANED)
            return
        self._name_swap()
        yield True
        if not self._ticket.is_valid(group.old_base_offsets):
            # Nobody should have changed the log without finishing this; what they did comes first.
            self._throw_away(SWAP)
            yield True
            return
        old = [s for s in self._ticket.segments if s.base_offset in group.old_base_offsets]
        new = self._open(old[-1].next_offset)
        for segment in old:
            log.segments.remove(segment)
        log.segments.add(new)
        self.is_in_place = True
        log.durability.replaced(old)
        log.retired.retire(old, self._now_ms + log.config.file_delete_delay_ms)
        yield True
        # Truncation or retention may have taken it away again.
        if log.segments.get(new.base_offset) is new:
            new.move_to_stage("")
        self._remove_snapshots()
        yield True

    def _name_swap(self) -> None:
        files = self._log.files
        for suffix in SEGMENT_SUFFIXES:
            cleaned = self._path(suffix, CLEANED)
            if files.exists(cleaned):
                files.rename(cleaned, self._path(suffix, SWAP))

    def _path(self, suffix: str, stage: str) -> str:
        return segment_path(self._log.directory, self._group.base_offset, suffix, stage)

    def _open(self, next_offset: int) -> LogSegment:
        log = self._log
        segment = LogSegment(
            log.files,
            log.handles,
            log.directory,
            self._group.base_offset,
            log.config,
            created_ms=self._now_ms,
            stage=SWAP,
        )
        segment.next_offset = next_offset
        segment.seal()
        return segment

    def _throw_away(self, stage: str) -> None:
        """If the directory was moved, the new segment has gone with it, and is swept there."""
        remove_files_at(self._log.files, self._ticket.directory, [self._group.base_offset], stage)

    def _remove_snapshots(self) -> None:
        """Producer snapshots stand at the start of segments: some of these are no more."""
        log = self._log
        for base_offset in self._group.old_base_offsets:
            path = segment_path(log.directory, base_offset, SNAPSHOT)
            if log.segments.get(base_offset) is None and log.files.exists(path):
                log.files.remove(path)


def swap_now(ticket: CompactionTicket, group: CleanedGroup, now_ms: int) -> bool:
    """Swap here and now; returns whether the new segment is in place."""
    return SegmentSwap(ticket, group, now_ms).finish()
