"""What waits in one partition, in the order in which it is delivered: derived from its log.

It answers what is due next, for many more messages than fit into memory: what is due before the
*horizon*, a minute or two from now, is in memory and sorted; all the rest is in files by due time
(`homes`). Whoever owns the index tells it every event of the log, in the order of the log: what is
armed (`add`), what is taken back (`remove`), what was delivered (`pass_to`). All of it also goes to
the files, but only a checkpoint says how much of them counts: whoever opens the index tells it
again what happened from the checkpoint's offset on, and without a checkpoint everything.

Nothing here waits for a disk longer than a write or a small read takes, except where it says so:
`plan_advance` and `plan_checkpoint` give the slow parts to a thread. There is one plan of each kind
at a time, and each ends with `complete_...` or, if it raised, with `abandon_...`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import chain, islice
from typing import Any, Final

from headwater.base.checks import check
from headwater.base.durations import LONG_MAX
from headwater.delay.index import index_directory
from headwater.delay.index.advance import AdvancePlan, SideEvent
from headwater.delay.index.append_files import AppendFile, AppendFiles, next_numbers
from headwater.delay.index.checkpoint import (
    CheckpointPlan,
    HomeRow,
    IndexCheckpoint,
    read_checkpoint,
)
from headwater.delay.index.delay_ids import DelayIds
from headwater.delay.index.entries import ENTRY_BYTES, pack, pack_mark, unpack
from headwater.delay.index.homes import HOUR_MS, MINUTE_MS, Home, Homes
from headwater.delay.index.listing import LISTED_BYTES_MAX, ListingPlan, Source
from headwater.delay.index.near import NearEntries
from headwater.storage.disk.files import FileSystem
from headwater.wire.delayed.copies import NOTHING_DELIVERED, OrderKey

#: What is due within this time is brought near, and up to a minute more.
LEAD_MS: Final = 60_000
#: With so many in memory nothing more is brought near, however much of it is overdue.
NEAR_COUNT_MAX: Final = 500_000
#: About what a home and its file take in memory.
_HOME_BYTES: Final = 600


class DelayIndex:
    """The index of one partition; `open` makes it."""

    def __init__(self, files: FileSystem, directory: str, now_ms: int) -> None:
        self._files = files
        self._directory = directory
        self._floor_ms = now_ms - now_ms % HOUR_MS
        self._advancing: AdvancePlan | None = None
        self._checkpointing: CheckpointPlan | None = None
        # They are never given twice: a thread may still write what nobody wants any more.
        self._numbers = next_numbers(index_directory.index_files(files, directory))
        self._clear()

    def _clear(self) -> None:
        self._pool = AppendFiles(self._files, self._directory, self._numbers)
        self._homes = Homes(self._pool, self._floor_ms)
        self._near = NearEntries()
        self.ids = DelayIds(self._pool)
        #: The key of the last message that was delivered.
        self.watermark = NOTHING_DELIVERED
        self._watermark_entry = b""
        #: The same when the index was opened: what was delivered then is not counted anywhere.
        self._opened_entry = b""
        #: All that waits and is due before this is in memory.
        self.horizon_ms = 0
        #: No event has been told that is at this offset or behind.
        self._end_offset = 0
        #: What is due first of all that is not near, if somebody has looked for it.
        self._first_far: OrderKey | None = None
        self._knows_first_far = False

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, now_ms: int
    ) -> tuple[DelayIndex, IndexCheckpoint | None]:
        """The index as its checkpoint has it; empty, if there is none that can be trusted."""
        index = cls(files, directory, now_ms)
        return index, index.reset_to_checkpoint()

    def reset_to_checkpoint(self) -> IndexCheckpoint | None:
        """Forget what came after the last checkpoint, as if opened anew."""
        self._cancel_plans()
        checkpoint = read_checkpoint(self._files, self._directory)
        if checkpoint is None or not index_directory.cut_to(
            self._files, self._directory, checkpoint
        ):
            self.reset()
            return None
        self._clear()
        for name, size, start_ms, end_ms, waiting in checkpoint.homes:
            file = self._pool.adopt(AppendFile(name, size))
            self._homes.add(Home(start_ms, end_ms, file, waiting))
        self.ids.load(checkpoint.ids)
        self.pass_to(checkpoint.watermark)
        self._opened_entry = self._watermark_entry
        self.horizon_ms = max(0, self.watermark.due_ms)
        self._end_offset = checkpoint.offset
        return checkpoint

    def reset(self) -> None:
        """Remove everything: the log has to be told from its start."""
        self._cancel_plans()
        index_directory.remove_all(self._files, self._directory)
        self._clear()

    def close(self) -> None:
        """Write nothing more. Threads with plans must have ended before it is opened again."""
        self._cancel_plans()

    def _cancel_plans(self) -> None:
        self._advancing = None
        if self._checkpointing is not None:
            self._checkpointing.cancel()
            self._checkpointing = None

    # -- events ----------------------------------------------------------------------------------

    # If one of these raises OSError, buffers could not be written, but the event is told all the
    # same; the next one, or a checkpoint, tries to write them again.

    def add(self, key: OrderKey) -> None:
        """A message waits. Armed offsets never decrease from call to call."""
        self._end_offset = key.armed_offset + 1
        self._tell(key.due_ms, pack(key), None)
        if self._knows_first_far and (self._first_far is None or key < self._first_far):
            self._first_far = key

    def remove(self, key: OrderKey, at_offset: int) -> None:
        """A message that waited does not wait any more, because of what stands at an offset."""
        self._end_offset = at_offset + 1
        if key == self._first_far:
            self._knows_first_far = False
        self._tell(key.due_ms, pack(key), pack_mark(key, at_offset))

    def _tell(self, due_ms: int, entry: bytes, mark: bytes | None) -> None:
        home = self._homes.append(due_ms, entry if mark is None else mark, is_mark=mark is not None)
        if due_ms < self.horizon_ms:
            if mark is None:
                self._near.add(due_ms, entry)
            else:
                self._near.remove(due_ms, entry)
        elif self._advancing is not None and due_ms < self._advancing.to_ms:
            self._advancing.side.append(SideEvent(due_ms, entry, mark))
        else:
            home.count += 1 if mark is None else -1
        self._pool.spill()

    def pass_to(self, key: OrderKey) -> None:
        """Everything up to this key was delivered."""
        if key > self.watermark:
            self.watermark = key
            self._watermark_entry = pack(key)
            if self._first_far is not None and self._first_far <= key:
                self._first_far, self._knows_first_far = None, False
            self._near.pass_to(key.due_ms, self._watermark_entry)

    # -- what is due -----------------------------------------------------------------------------

    def first(self) -> OrderKey | None:
        """What is delivered next of all that is near; None if nothing is."""
        entry = self._near.first()
        return None if entry is None else unpack(entry)

    def due(self, now_ms: int, limit: int) -> list[OrderKey]:
        """What is due now and near, in order; it waits until `pass_to` says otherwise."""
        return [unpack(entry) for entry in self._near.between(0, now_ms + 1, limit)]

    # -- bringing near ---------------------------------------------------------------------------

    def plan_advance(self, now_ms: int) -> AdvancePlan | None:
        """The next piece of work that brings near what is due soon; None if there is none now."""
        target_ms = -(-(now_ms + LEAD_MS) // MINUTE_MS) * MINUTE_MS
        if self._advancing is not None or self._near.count >= NEAR_COUNT_MAX:
            return None
        if self.horizon_ms >= target_ms:
            return None
        home = self._homes.next_from(self.horizon_ms)
        if home is None or home.start_ms >= target_ms:
            self.horizon_ms = target_ms
            return None
        self.horizon_ms = max(self.horizon_ms, home.start_ms)
        self._advancing = AdvancePlan(self._pool, self._numbers, home, self.horizon_ms, target_ms)
        return self._advancing

    def complete_advance(self, plan: AdvancePlan) -> None:
        """The plan ran without an error."""
        if plan is not self._advancing:
            plan.discard()
            return
        self._advancing = None
        if plan.is_split:
            self._homes.split(plan.home, plan.from_ms, plan.pieces)
            for due_ms, entry, mark in plan.side:
                home = self._homes.append(
                    due_ms, entry if mark is None else mark, is_mark=mark is not None
                )
                home.count += 1 if mark is None else -1
            return
        data = plan.run_data
        plan.home.count -= _count_above(self._opened_entry, data)
        delivered = len(data) // ENTRY_BYTES - _count_above(self._watermark_entry, data)
        data = data[delivered * ENTRY_BYTES :]
        if plan.to_ms == plan.home.end_ms:
            plan.home.count = 0
        self._near.add_run(data)
        self.horizon_ms = plan.to_ms
        for due_ms, entry, mark in plan.side:
            if mark is not None:
                self._near.remove(due_ms, entry)
            elif entry > self._watermark_entry:
                self._near.add(due_ms, entry)

    def abandon_advance(self, plan: AdvancePlan) -> None:
        """The plan failed: what it was about is where it was."""
        plan.discard()
        if plan is self._advancing:
            self._advancing = None
            plan.home.count += plan.side_count

    def advance(self, now_ms: int) -> None:
        """Bring near all that is due soon, at once."""
        while (plan := self.plan_advance(now_ms)) is not None:
            try:
                plan.run()
            except BaseException:
                self.abandon_advance(plan)
                raise
            self.complete_advance(plan)

    # -- checkpoints -----------------------------------------------------------------------------

    def plan_checkpoint(self, state: Mapping[str, Any], offset: int) -> CheckpointPlan:
        """A checkpoint of now, when all events in front of `offset` have been told, and no others.

        It counts from when it has run. That may be later, when the log is sure to keep these. Best
        bring near first what was delivered meanwhile, else that is counted as waiting for a while.
        """
        check(self._checkpointing is None, "two checkpoints at a time")
        check(offset >= self._end_offset, "events behind offset %d were told", offset)
        first = self.first()
        self._homes.retire_until(self.horizon_ms if first is None else first.due_ms)
        self._pool.write_all()
        rows = tuple(
            HomeRow(home.file.name, home.file.size, home.start_ms, home.end_ms, self._waiting(home))
            for home in self._homes
        )
        checkpoint = IndexCheckpoint(offset, self.watermark, state, rows, self.ids.rows())
        self._checkpointing = CheckpointPlan(self._pool, checkpoint)
        return self._checkpointing

    def _waiting(self, home: Home) -> int:
        """How many wait in a home, those in memory included."""
        near = 0
        if home.start_ms < self.horizon_ms:
            near = self._near.count_between(home.start_ms, min(home.end_ms, self.horizon_ms))
        plan = self._advancing
        return home.count + near + (plan.side_count if plan and plan.home is home else 0)

    def complete_checkpoint(self, plan: CheckpointPlan) -> None:
        """The plan ran without an error: files that only the checkpoint before needed can go."""
        if plan is self._checkpointing:
            self._checkpointing = None
            self._pool.remove_retired(plan.names)

    def abandon_checkpoint(self, plan: CheckpointPlan) -> None:
        """The plan did not run, or failed. After a sync that failed, only `reset` makes sense."""
        plan.cancel()
        plan.give_back()
        if plan is self._checkpointing:
            self._checkpointing = None

    def checkpoint(self, state: Mapping[str, Any], offset: int) -> None:
        """Plan a checkpoint, run and complete it."""
        plan = self.plan_checkpoint(state, offset)
        try:
            plan.run()
        except BaseException:
            self.abandon_checkpoint(plan)
            raise
        self.complete_checkpoint(plan)

    # -- looking ---------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many wait."""
        side = 0 if self._advancing is None else self._advancing.side_count
        return self._near.count + self._homes.count + side

    def count_until(self, due_ms: int) -> int:
        """How many are due then or earlier; beyond the horizon, only whole homes are counted."""
        far = sum(home.count for home in self._homes if home.end_ms <= due_ms + 1)
        return self._near.count_between(0, due_ms + 1) + far

    def between(self, from_ms: int, to_ms: int, limit: int) -> list[OrderKey]:
        """What is due from one time on and before another, in order.

        Beyond the horizon this reads files, as `plan_listing` says, here and now.
        """
        return self.plan_listing(from_ms, to_ms, limit).run()

    def plan_listing(self, from_ms: int, to_ms: int, limit: int) -> ListingPlan:
        """What to read for the same: nothing, if enough of it is near, and else one file at least.

        The plan may run in any thread.
        """
        near = self._near.between(from_ms, min(to_ms, self.horizon_ms), limit)
        sources: list[Source] = []
        planned_bytes = 0
        for home in self._homes:
            if home.start_ms >= to_ms or len(near) >= limit or planned_bytes > LISTED_BYTES_MAX:
                break
            start_ms, end_ms = max(from_ms, home.start_ms, self.horizon_ms), min(home.end_ms, to_ms)
            if start_ms < end_ms:
                sources.append(Source.of(self._pool, home.file, start_ms, end_ms))
                planned_bytes += home.file.size_bytes
        return ListingPlan(near, sources, limit, self._watermark_entry)

    def lying_before(self, offset: int, limit: int) -> list[OrderKey]:
        """What waits and lies in front of an offset, in any order; not all, where many wait."""
        bound = offset.to_bytes(8, "big")
        plan = self.plan_listing(0, LONG_MAX, limit)
        entries = chain(plan.near, *(source.entries() for source in plan.sources))
        waiting = (each for each in entries if each[16:] < bound and each > self._watermark_entry)
        return [unpack(each) for each in islice(waiting, limit)]

    def first_of_all(self) -> OrderKey | None:
        """What is delivered next, near or not; None if nothing waits.

        Beyond the horizon it is looked up once, and again only when that one does not wait any
        more: counts are asked for often, and the hour that comes first may have millions.
        """
        first = self.first()
        if first is not None:
            return first
        if not self._knows_first_far:
            self._first_far = next(iter(self.between(0, LONG_MAX, 1)), None)
            self._knows_first_far = True
        return self._first_far

    def holds(self, key: OrderKey) -> bool:
        """Whether a message waits with this key, which must be the first that it had.

        Nothing is searched for here, so this is for whoever asks for thousands at a time. The first
        who asks about an hour beyond the horizon has its file read.
        """
        if key <= self.watermark or key.armed_offset >= self._end_offset:
            return False
        if key.due_ms < self.horizon_ms:
            return self._near.holds(key.due_ms, pack(key))
        return self._homes.holds(key)

    def find(self, offset: int, due_ms: int) -> OrderKey | None:
        """The message with this offset and due time, if it waits; beyond the horizon this reads.

        All of a file is searched. Whoever knows the key had better ask whether that waits.
        """
        if due_ms < self.horizon_ms:
            entry = self._near.find(due_ms, offset)
        else:
            entry = self._homes.find(due_ms, offset)
        return None if entry is None or entry <= self._watermark_entry else unpack(entry)

    @property
    def size_bytes(self) -> int:
        """What counts on disk, or will when it is written."""
        return sum(home.file.size_bytes for home in self._homes) + self.ids.size_bytes

    @property
    def memory_bytes(self) -> int:
        """An estimate."""
        file_count = len(self._pool.by_name)
        return self._near.memory_bytes + self._pool.buffered_bytes + _HOME_BYTES * file_count


def _count_above(entry: bytes, data: bytes) -> int:
    """How many of sorted entries are greater than one."""
    numbers = range(len(data) // ENTRY_BYTES)
    return len(numbers) - bisect_right(
        numbers, entry, key=lambda at: data[at * ENTRY_BYTES : (at + 1) * ENTRY_BYTES]
    )
