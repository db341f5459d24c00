"""Bugs of delayed deliveries, one each, for the campaigns to find."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from headwater.delay.delay_state import DelayState
from headwater.delay.hand_over import HandOver
from headwater.delay.index.homes import SUFFIX
from headwater.delay.index.index import DelayIndex
from headwater.delay.partition_delays import PartitionDelays
from headwater.storage import partition_log
from headwater.storage.errors import LogStorageError
from headwater.storage.log_reads import LogRead, read_visible_segments
from headwater.storage.segments.segment_list import SegmentList
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.delayed.delayed_batch import NONE, DelayedKind
from headwater.wire.records import read_batch_header


def forget_the_watermark_when_arming(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key without the maximum: what is armed late may sort behind what was delivered."""
    arm = DelayState._arm

    def arm_as_due(self: DelayState, each: Any, armed_offset: int, record: Any) -> None:
        watermark, self.watermark = self.watermark, OrderKey(-1, -1, -1)
        try:
            arm(self, each, armed_offset, record)
        finally:
            self.watermark = watermark

    monkeypatch.setattr(DelayState, "_arm", arm_as_due)


def arm_transactions_at_their_own_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a message of a transaction had been deliverable from when it was written."""
    arm = DelayState._arm

    def arm_at_wrap(self: DelayState, each: Any, armed_offset: int, record: Any) -> None:
        arm(self, each, each.offset if each.kind == DelayedKind.MESSAGE else armed_offset, record)

    monkeypatch.setattr(DelayState, "_arm", arm_at_wrap)


def note_before_the_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watermark runs ahead of the log: an append that fails loses what it was about."""
    deliver = HandOver._deliver

    def note_first(self: HandOver, state: DelayState, deliveries: Any, now_ms: int) -> None:
        state.delivered([each.key for each in deliveries])
        deliver(self, state, deliveries, now_ms)

    monkeypatch.setattr(HandOver, "_deliver", note_first)


def roll_without_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    add = DelayIndex.add
    arm = DelayState._arm

    def arm_unless_rolled(self: DelayState, each: Any, armed_offset: int, record: Any) -> None:
        is_roll = each.kind == DelayedKind.MESSAGE and each.original != NONE
        monkeypatch.setattr(DelayIndex, "add", (lambda *_: None) if is_roll else add)
        arm(self, each, armed_offset, record)

    monkeypatch.setattr(DelayState, "_arm", arm_unless_rolled)


def lose_rolled_messages_when_the_first_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the log from its present start finds no message that a roll replaces."""
    arm = DelayState._arm

    def arm_if_found(self: DelayState, each: Any, armed_offset: int, record: Any) -> None:
        is_roll = each.kind == DelayedKind.MESSAGE and each.original != NONE
        if not is_roll or self._find_offset(each.original) is not None:
            arm(self, each, armed_offset, record)

    monkeypatch.setattr(DelayState, "_arm", arm_if_found)


def trust_an_index_past_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came behind the checkpoint is left in the files, and told again."""
    monkeypatch.setattr(
        "headwater.delay.index.index.index_directory.cut_to", lambda *_arguments: True
    )
    reset = DelayIndex.reset_to_checkpoint

    def take_all_bytes(self: DelayIndex) -> Any:
        checkpoint = reset(self)
        for file in self._pool.by_name.values():
            size = self._files.size(self._pool.path(file.name))
            file.size = size - size % (24 if file.name.endswith(SUFFIX) else 16)
        return checkpoint

    monkeypatch.setattr(DelayIndex, "reset_to_checkpoint", take_all_bytes)


def trust_a_checkpoint_of_a_lost_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log lost its end with the power, and has grown beyond the checkpoint again."""
    monkeypatch.setattr(
        DelayState,
        "is_of_this_log",
        lambda self, _kept, offset: offset <= self._log.log_end_offset,
    )


def count_what_was_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of what lay in front of the log's start is counted off from what waits behind it."""
    monkeypatch.setattr(
        DelayState,
        "_count_out",
        lambda self, offset: self.waiting.remove(self._segment_of(offset), 0),
    )


def deliver_what_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandOver, "_lost", lambda *_arguments: None)


def keep_what_was_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionDelays, "truncated", lambda self: self.wake())


def fail_some_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bug: copies that cannot be appended come a little later."""
    deliver, number = HandOver._deliver, count()

    def fail_now_and_then(self: HandOver, state: DelayState, deliveries: Any, now_ms: int) -> None:
        append = self._partition.append

        def refuse(*_arguments: Any, **_named: Any) -> Any:
            raise LogStorageError("The disk takes nothing just now.")

        if next(number) % 4 == 1:
            self._partition.append = refuse  # type: ignore[method-assign]
        try:
            deliver(self, state, deliveries, now_ms)
        finally:
            self._partition.append = append  # type: ignore[method-assign]

    monkeypatch.setattr(HandOver, "_deliver", fail_now_and_then)


def note_before_an_append_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_some_appends(monkeypatch)
    note_before_the_append(monkeypatch)


def skip_a_visible_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that meets hidden batches is sent behind the first one that it should see."""

    def read(
        segments: SegmentList,
        offset: int,
        max_bytes: int,
        upper_offset: int,
        min_one_batch: bool,
        **named: bool,
    ) -> LogRead:
        first = read_visible_segments(
            segments, offset, max_bytes, upper_offset, min_one_batch, **named
        )
        if first.region is None or first.segment is None:
            return first
        found = first.segment.find(offset)
        is_behind_hidden = found is None or found.position < first.region.position
        header = read_batch_header(first.region.read())
        if not is_behind_hidden or header.next_offset >= upper_offset:
            return first
        following = header.next_offset
        return read_visible_segments(
            segments, following, max_bytes, upper_offset, min_one_batch, **named
        )

    monkeypatch.setattr(partition_log, "read_visible_segments", read)
