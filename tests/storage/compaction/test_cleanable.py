"""Which part of a log is dirty, and which log comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.sim.campaigns.logs import (
    NOW_MS,
    append_numbered,
    batch_of,
    end_transaction,
    open_log,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.compaction.cleanable import (
    DirtySection,
    dirty_section,
    filthiest,
    valid_dirty_offset,
)
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before

CONFIG = LogConfig(segment_bytes=1 << 20, cleanup_policy=frozenset({"compact"}))


def make_log(
    segment_count: int = 4, config: LogConfig = CONFIG, high_watermark: int | None = None
) -> PartitionLog:
    """Sealed segments of one batch with ten records each, a second apart, and an empty one."""
    log = open_log(FaultyDisk(directories=["/"]), "/topic-0", config)
    for number in range(segment_count):
        batch = batch_of(*[b"value"] * 10, timestamp=NOW_MS + 1_000 * number)
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset if high_watermark is None else high_watermark)
    return log


def section(log: PartitionLog, first_dirty_offset: int = 0, now_ms: int = NOW_MS) -> DirtySection:
    return dirty_section(log, first_dirty_offset, now_ms)


def test_all_but_the_active_segment_can_be_cleaned() -> None:
    log = make_log()
    log.append_as_leader(batch_of(b"in the active one"), leader_epoch=0, now_ms=NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    found = section(log)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 40)
    assert (found.clean_bytes, found.dirty_ratio) == (0, 1.0)
    assert found.is_cleanable


def test_the_ratio_counts_whole_segments() -> None:
    log = make_log()
    size = log.segments[0].size_bytes
    assert section(log, 20)[3:5] == (2 * size, 2 * size)
    assert section(log, 20).dirty_ratio == 0.5
    assert not section(log, 20).is_cleanable, "the ratio must exceed the setting"
    assert section(log, 15)[3:5] == (size, 3 * size)
    assert section(log, 40).dirty_ratio == 0.0
    assert not section(log, 40).is_cleanable


def test_the_high_watermark_and_open_transactions_bound_it() -> None:
    log = make_log(high_watermark=25)
    assert section(log).first_uncleanable_offset == 20
    log.raise_high_watermark(30)
    assert section(log).first_uncleanable_offset == 30
    append_numbered(log, 0, b"open", transactional=True)
    log.roll(NOW_MS)
    append_numbered(log, 1, b"more", transactional=True)
    log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    assert section(log).first_uncleanable_offset == 40
    end_transaction(log, 7, commit=True)
    log.raise_high_watermark(log.log_end_offset)
    assert section(log).first_uncleanable_offset == 42


def test_what_is_not_durable_is_left_alone() -> None:
    log = make_log(2)
    log.append_as_leader(batch_of(b"unsynced"), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.raise_high_watermark(log.log_end_offset)
    assert section(log).first_uncleanable_offset == 20
    log.flush()
    assert section(log).first_uncleanable_offset == 21


def test_young_segments_wait_for_the_minimum_lag() -> None:
    log = make_log(config=replace(CONFIG, min_compaction_lag_ms=1_000))
    # The youngest records of the segments are 9 ms younger than their first.
    assert section(log, now_ms=NOW_MS + 1_008).first_uncleanable_offset == 0
    assert section(log, now_ms=NOW_MS + 1_009).first_uncleanable_offset == 10
    assert section(log, now_ms=NOW_MS + 3_009).first_uncleanable_offset == 30
    assert section(log, 35, now_ms=NOW_MS).first_uncleanable_offset == 35
    assert not section(log, 35, now_ms=NOW_MS).is_cleanable


def test_the_maximum_lag_makes_a_log_cleanable() -> None:
    log = make_log(config=replace(CONFIG, max_compaction_lag_ms=5_000))
    assert not section(log, 30, now_ms=NOW_MS + 3_009 + 5_000).is_cleanable
    overdue = section(log, 30, now_ms=NOW_MS + 3_009 + 5_001)
    assert overdue.overdue_ms == 1
    assert overdue.dirty_ratio == 0.25
    assert overdue.is_cleanable
    assert not section(log, 40, now_ms=NOW_MS + 1_000_000).is_cleanable


@pytest.mark.parametrize(("checkpoint", "expected"), [(None, 3), (2, 3), (7, 7), (40, 40), (41, 3)])
def test_a_checkpoint_outside_the_log_is_reset(checkpoint: int | None, expected: int) -> None:
    log = make_log()
    delete_records_before(log, 3)
    assert valid_dirty_offset(log, checkpoint) == expected


def test_the_dirtiest_comes_first() -> None:
    log = make_log()
    sections = [section(log, offset) for offset in (30, 10, 20)]
    assert filthiest(sections) is sections[1]
    assert filthiest([sections[0]]) is None
    assert filthiest([]) is None
