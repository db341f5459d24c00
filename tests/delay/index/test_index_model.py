"""The index of what waits against a dictionary and a clock, through crashes of every kind.

The events stand for the log: their numbers are its offsets. Whatever the index was told after the
checkpoint that it is opened with, it is told again, as its owner does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random
from typing import NamedTuple
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.delay.index import advance, append_files, index
from headwater.delay.index.advance import AdvancePlan
from headwater.delay.index.checkpoint import CheckpointPlan, IndexCheckpoint
from headwater.delay.index.index import DelayIndex
from headwater.delay.index.index_directory import is_index_file
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.wire.delayed.copies import NOTHING_DELIVERED, OrderKey

_DIRECTORY = "/data/orders-0"
_START_MS = 1_700_000_000_000
_EVER = 1 << 60
_IDS = (b"a", b"b", b"order-17")


class Event(NamedTuple):
    """What one record of the log does, in this order."""

    removed: tuple[OrderKey, ...] = ()
    added: tuple[OrderKey, ...] = ()
    #: Armed and taken back by the same record.
    undone: tuple[OrderKey, ...] = ()
    delivered: OrderKey | None = None
    sender_id: bytes = b""


def _tell(target: DelayIndex, offset: int, event: Event) -> None:
    for key in event.removed:
        target.remove(key, offset)
    for key in event.added:
        target.add(key)
    for key in event.undone:
        target.remove(key, offset)
    if event.delivered is not None:
        target.pass_to(event.delivered)
    if event.sender_id:
        target.ids.add(event.sender_id, OrderKey(0, offset, offset))


class IndexAndModel(RuleBasedStateMachine):
    delays = st.one_of(
        st.integers(-5_000, 5_000),
        st.integers(0, 300_000),
        st.integers(0, 4 * 3_600_000),
        st.sampled_from([0, 1, 1_000, 60_000, 3_600_000, 7 * 86_400_000]),
    )
    which = st.integers(0, 1 << 20)
    seeds = st.integers(0, 1 << 20)

    def __init__(self) -> None:
        super().__init__()
        # So small that a few entries fill buffers, and that homes are split.
        self.patches = contextlib.ExitStack()
        self.patches.enter_context(patch.object(append_files, "BUFFER_BYTES_MAX", 240))
        self.patches.enter_context(patch.object(append_files, "_SPILLED_FILES", 2))
        self.patches.enter_context(patch.object(append_files, "CHUNK_BYTES", 96))
        self.patches.enter_context(patch.object(advance, "SPLIT_BYTES", 120))
        self.patches.enter_context(patch.object(index, "NEAR_COUNT_MAX", 12))
        self.now_ms = _START_MS
        self.disk = FaultyDisk(directories=[_DIRECTORY])
        self.events: list[Event] = []
        self.waiting: set[OrderKey] = set()
        self.watermark = NOTHING_DELIVERED
        self.forgotten_below = 0
        self.counts_exactly = True
        #: The offset of the checkpoint that must be found.
        self.checkpoint_offset: int | None = None
        self.advancing: AdvancePlan | None = None
        self.has_advanced = False
        self.checkpointing: CheckpointPlan | None = None
        self.has_written = False
        self.index, found = DelayIndex.open(self.disk, _DIRECTORY, self.now_ms)
        assert found is None

    def teardown(self) -> None:
        self.patches.close()

    # -- what happens in the log -----------------------------------------------------------------

    def happen(self, event: Event) -> None:
        self.events.append(event)
        self.apply(event)
        _tell(self.index, len(self.events) - 1, event)

    def apply(self, event: Event) -> None:
        self.waiting -= set(event.removed)
        self.waiting |= set(event.added)
        self.waiting -= set(event.undone)
        if event.delivered is not None:
            self.watermark = max(self.watermark, event.delivered)
            self.waiting = {key for key in self.waiting if key > self.watermark}

    def due(self, delay_ms: int) -> int:
        return max(0, self.now_ms + delay_ms, self.watermark.due_ms)

    def pick(self, which: int) -> OrderKey:
        return sorted(self.waiting)[which % len(self.waiting)]

    @rule(delay_ms=delays, sender_id=st.sampled_from([b"", *_IDS]))
    def add(self, delay_ms: int, sender_id: bytes) -> None:
        offset = len(self.events)
        key = OrderKey(self.due(delay_ms), offset, offset)
        self.happen(Event(added=(key,), sender_id=sender_id))

    @rule(many=st.lists(delays, min_size=2, max_size=12))
    def add_many_by_one_commit(self, many: list[int]) -> None:
        first = len(self.events)
        self.events += [Event() for _ in many]
        armed = len(self.events)
        keys = [OrderKey(self.due(delay), armed, first + n) for n, delay in enumerate(many)]
        self.happen(Event(added=tuple(keys)))

    @rule(delay_ms=delays)
    def add_and_cancel_by_one_commit(self, delay_ms: int) -> None:
        offset = len(self.events)
        key = OrderKey(self.due(delay_ms), offset, offset)
        self.happen(Event(added=(key,), undone=(key,)))

    @precondition(lambda self: self.waiting)
    @rule(which=which)
    def cancel(self, which: int) -> None:
        self.happen(Event(removed=(self.pick(which),)))

    @precondition(lambda self: self.waiting)
    @rule(which=which, delay_ms=delays, same=st.booleans())
    def reschedule(self, which: int, delay_ms: int, same: bool) -> None:
        old = self.pick(which)
        due_ms = old.due_ms if same else self.due(delay_ms)
        new = OrderKey(due_ms, len(self.events), old.offset)
        self.happen(Event(removed=(old,), added=(new,)))

    @rule(limit=st.integers(1, 20))
    def deliver(self, limit: int) -> None:
        keys = self.index.due(self.now_ms, limit)
        if keys:
            # Never anything but what comes next.
            assert keys == sorted(self.waiting)[: len(keys)]
            assert all(key.due_ms <= self.now_ms for key in keys)
            self.happen(Event(delivered=keys[-1]))

    @precondition(lambda self: self.waiting)
    @rule(which=which)
    def learn_of_deliveries(self, which: int) -> None:
        """Another clock was ahead of this one."""
        self.happen(Event(delivered=self.pick(which)))

    @rule(back=st.integers(0, 8))
    def forget_ids(self, back: int) -> None:
        self.forgotten_below = max(self.forgotten_below, len(self.events) - back)
        for _ in range(16):
            self.index.ids.forget_below(self.forgotten_below)

    # -- time, and bringing near -----------------------------------------------------------------

    @rule(step_ms=st.one_of(st.integers(0, 5_000), st.integers(-100_000, 10_000_000)))
    def tick(self, step_ms: int) -> None:
        self.now_ms = max(_START_MS - 200_000, self.now_ms + step_ms)

    @precondition(lambda self: self.advancing is None)
    @rule()
    def advance(self) -> None:
        self.index.advance(self.now_ms)
        smallest = min(self.waiting, default=None)
        if smallest is not None and smallest.due_ms <= self.now_ms:
            assert self.index.first() == smallest

    @precondition(lambda self: self.advancing is None)
    @rule()
    def plan_advance(self) -> None:
        self.advancing = self.index.plan_advance(self.now_ms)
        self.has_advanced = False

    @precondition(lambda self: self.advancing is not None and not self.has_advanced)
    @rule()
    def run_advance(self) -> None:
        assert self.advancing is not None
        with contextlib.suppress(OSError):  # A reset may have taken the file away.
            self.advancing.run()
        self.has_advanced = True

    @precondition(lambda self: self.has_advanced and self.advancing is not None)
    @rule(well=st.sampled_from([True, True, True, False]))
    def end_advance(self, well: bool) -> None:
        assert self.advancing is not None
        if well:
            self.index.complete_advance(self.advancing)
        else:
            self.index.abandon_advance(self.advancing)
        self.advancing = None

    # -- checkpoints -----------------------------------------------------------------------------

    def state(self) -> dict[str, object]:
        if self.watermark.due_ms >= self.index.horizon_ms:
            # What was delivered before it came near is still counted, and will be for a while.
            self.counts_exactly = False
        return {"events": len(self.events)}

    @precondition(lambda self: self.checkpointing is None)
    @rule()
    def checkpoint(self) -> None:
        self.index.checkpoint(self.state(), len(self.events))
        self.checkpoint_offset = len(self.events)

    @precondition(lambda self: self.checkpointing is None)
    @rule()
    def plan_checkpoint(self) -> None:
        self.checkpointing = self.index.plan_checkpoint(self.state(), len(self.events))
        self.has_written = False

    @precondition(lambda self: self.checkpointing is not None and not self.has_written)
    @rule()
    def run_checkpoint(self) -> None:
        assert self.checkpointing is not None
        self.checkpointing.run()
        self.checkpoint_offset = self.checkpointing.checkpoint.offset
        self.has_written = True

    @precondition(lambda self: self.has_written and self.checkpointing is not None)
    @rule()
    def complete_checkpoint(self) -> None:
        assert self.checkpointing is not None
        self.index.complete_checkpoint(self.checkpointing)
        self.checkpointing = None

    @precondition(lambda self: self.checkpointing is not None and not self.has_written)
    @rule()
    def abandon_checkpoint(self) -> None:
        assert self.checkpointing is not None
        self.index.abandon_checkpoint(self.checkpointing)
        self.checkpointing = None

    # -- trouble ---------------------------------------------------------------------------------

    @rule(seed=seeds)
    def lose_power(self, seed: int) -> None:
        self.reopen(self.disk.crash(Random(seed)))

    @rule()
    def end_process(self) -> None:
        self.reopen(self.disk.after_process_end())

    @precondition(lambda self: self.checkpointing is None)
    @rule(seed=seeds, operations=st.integers(0, 30))
    def lose_power_in_a_checkpoint(self, seed: int, operations: int) -> None:
        self.disk.before_operation = PowerCut(operations)
        before = self.checkpoint_offset
        try:
            self.checkpoint()
        except SimulatedCrash:
            # It may have been written, or not.
            self.checkpoint_offset = None
        self.reopen(self.disk.crash(Random(seed)), {before, len(self.events)})

    def reopen(self, disk: FaultyDisk, allowed: set[int | None] | None = None) -> None:
        self.disk = disk
        self.advancing = self.checkpointing = None
        self.index, found = DelayIndex.open(disk, _DIRECTORY, self.now_ms)
        self.replay(found, allowed)

    def replay(self, found: IndexCheckpoint | None, allowed: set[int | None] | None = None) -> None:
        offset = None if found is None else found.offset
        assert offset in (allowed or {self.checkpoint_offset})
        self.checkpoint_offset = offset
        if found is not None:
            assert found.state == {"events": offset}
        for number in range(offset or 0, len(self.events)):
            _tell(self.index, number, self.events[number])

    @rule()
    def reset(self) -> None:
        self.index.reset()
        self.counts_exactly = True
        assert not [path for path in self.disk.contents() if is_index_file(path)]
        self.stale(lambda: self.replay(None, {None}))

    @rule(which=which)
    def truncate_the_log(self, which: int) -> None:
        """What was told is not true any more."""
        end = len(self.events) - which % 4 if self.events else 0
        self.events = self.events[: max(0, end)]
        self.waiting, self.watermark = set(), NOTHING_DELIVERED
        self.forgotten_below = min(self.forgotten_below, len(self.events))
        for event in self.events:
            self.apply(event)
        found = self.index.reset_to_checkpoint()
        if found is not None and found.offset > len(self.events):
            self.index.reset()
            self.checkpoint_offset = found = None
        self.stale(lambda: self.replay(found))

    def stale(self, replay: Callable[[], None]) -> None:
        """Threads end their work on what is not there any more, before and after it is again."""
        advancing, checkpointing = self.advancing, self.checkpointing
        has_advanced, has_written = self.has_advanced, self.has_written
        self.advancing = self.checkpointing = None
        if advancing is not None and not has_advanced:
            with contextlib.suppress(OSError):
                advancing.run()
        replay()
        if checkpointing is not None and not has_written:
            checkpointing.run()
        if checkpointing is not None:
            self.index.complete_checkpoint(checkpointing)
        if advancing is not None:
            self.index.complete_advance(advancing)

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def what_waits_is_known(self) -> None:
        assert self.index.watermark == self.watermark
        assert self.index.between(0, _EVER, 10_000) == sorted(self.waiting)

    @invariant()
    def what_comes_next_is_known(self) -> None:
        assert self.index.first_of_all() == min(self.waiting, default=None)

    @invariant()
    def memory_holds_what_is_near_and_nothing_else(self) -> None:
        near = [key for key in sorted(self.waiting) if key.due_ms < self.index.horizon_ms]
        assert self.index.due(_EVER, 10_000) == near
        assert self.index.first() == (near[0] if near else None)
        if self.advancing is None and near:
            assert self.index.count_until(near[-1].due_ms) >= len(near)

    @invariant()
    def all_is_counted(self) -> None:
        """What is delivered before it came near counts until it has."""
        if self.counts_exactly and self.watermark.due_ms < self.index.horizon_ms:
            assert self.index.count == len(self.waiting)
        else:
            assert self.index.count >= len(self.waiting)

    @invariant()
    def messages_are_found(self) -> None:
        waiting = sorted(self.waiting)[:: max(1, len(self.waiting) // 4)]
        for key in waiting:
            assert self.index.find(key.offset, key.due_ms) == key
            assert self.index.find(key.offset, key.due_ms + 1) is None
        if self.events and self.events[-1].removed:
            gone = self.events[-1].removed[0]
            found = self.index.find(gone.offset, gone.due_ms)
            assert found is None or found in self.waiting

    @invariant()
    def first_keys_are_held_until_they_change(self) -> None:
        first: dict[int, OrderKey] = {}
        for event in self.events:
            for key in event.added:
                first.setdefault(key.offset, key)
        for key in list(first.values())[:: max(1, len(first) // 6)]:
            assert self.index.holds(key) == (key in self.waiting)
        unheard_of = OrderKey(self.now_ms + 3_600_000, len(self.events), len(self.events))
        assert not self.index.holds(unheard_of)

    @invariant()
    def ids_are_found(self) -> None:
        for sender_id in _IDS:
            offsets = [n for n, event in enumerate(self.events) if event.sender_id == sender_id]
            expected = [n for n in reversed(offsets) if n >= self.forgotten_below]
            found = self.index.ids.candidates(sender_id)
            assert [key.offset for key in found if key.offset >= self.forgotten_below] == expected


TestIndexAndModel = IndexAndModel.TestCase
TestIndexAndModel.settings = settings(stateful_step_count=50)
