"""Cutting a log back: where it ends then, what it still knows, and that a crash undoes nothing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    append,
    append_numbered,
    leader_batch,
    new_disk,
    open_log,
    read_records,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import LogStorageError, OutOfOrderSequenceError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_fully, truncate_to
from tests.support.tiers import rounds

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)


def follow(log: PartitionLog, *batches: bytes) -> None:
    for batch in batches:
        log.append_as_follower(batch, now_ms=NOW_MS)


def three_segments(disk: FaultyDisk | None = None) -> PartitionLog:
    """Nine batches of one record in segments at 0, 3 and 6; all of it replicated."""
    log = open_log(disk or new_disk(), DIRECTORY, CONFIG)
    follow(log, *(sized_batch(offset, 100, timestamp=NOW_MS + offset) for offset in range(9)))
    log.raise_high_watermark(9)
    return log


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in read_records(log, log.log_start_offset)]


def base_offsets(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# -- where the log ends --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "expected_bases"),
    [(9, [0, 3, 6]), (7, [0, 3, 6]), (6, [0, 3, 6]), (5, [0, 3]), (3, [0, 3]), (2, [0]), (0, [0])],
)
def test_a_log_ends_where_it_was_cut(offset: int, expected_bases: list[int]) -> None:
    log = three_segments()
    assert truncate_to(log, offset, NOW_MS) == (offset < 9)
    assert (log.log_end_offset, log.high_watermark) == (offset, offset)
    assert base_offsets(log) == expected_bases
    assert offsets(log) == list(range(offset))
    assert append(log, b"next").base_offset == offset
    assert offsets(log) == list(range(offset + 1))


def test_a_batch_that_reaches_beyond_the_cut_goes_as_a_whole() -> None:
    log = open_log(new_disk(), DIRECTORY)
    append(log, b"a", b"b")
    append(log, b"c", b"d", b"e")
    assert truncate_to(log, 3, NOW_MS)
    assert (log.log_end_offset, offsets(log)) == (2, [0, 1])


def test_a_cut_in_a_gap_ends_the_log_there() -> None:
    log = open_log(new_disk(), DIRECTORY)
    follow(log, leader_batch(0, b"a"), leader_batch(40, b"b"))
    truncate_to(log, 20, NOW_MS)
    assert (log.log_end_offset, offsets(log)) == (20, [0])
    assert append(log, b"c").base_offset == 20
    assert offsets(log) == [0, 20]


def test_a_cut_behind_the_end_changes_nothing() -> None:
    log = three_segments()
    assert not truncate_to(log, 100, NOW_MS)
    assert (log.log_end_offset, offsets(log)) == (9, list(range(9)))


def test_a_cut_in_front_of_all_segments_empties_the_log_there() -> None:
    log = open_log(new_disk(), DIRECTORY, log_start_offset=50)
    append(log, b"a")
    assert truncate_to(log, 20, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, base_offsets(log)) == (20, 20, [20])


def test_a_cut_below_the_log_start_takes_it_along() -> None:
    log = three_segments()
    delete_records_before(log, 5)
    truncate_to(log, 4, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_truncating_fully_goes_on_empty_at_the_offset() -> None:
    log = three_segments()
    append_numbered(log, 0, b"v")
    truncate_fully(log, 1000, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1000)
    assert (base_offsets(log), log.size_bytes) == ([1000], 0)
    assert (log.leader_epochs.entries, len(log.producer_states)) == ([], 0)
    assert append_numbered(log, 5, b"v").base_offset == 1000


def test_truncating_fully_takes_the_high_watermark_along() -> None:
    log = three_segments()
    truncate_fully(log, 1000, NOW_MS)
    assert (log.high_watermark, log.last_stable_offset) == (1000, 1000)


def test_truncating_fully_at_the_same_place_twice() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for value in (b"first", b"second", b"third"):
        append(log, value)
        assert [record.value for record in read_records(log, 0)] == [value]
        truncate_fully(log, 0, NOW_MS)
    log.retired.remove_due(NOW_MS + log.config.file_delete_delay_ms)
    append(log, b"fourth")
    assert [record.value for record in read_records(log, 0)] == [b"fourth"]


# -- what the log still knows --------------------------------------------------------------------


def test_epochs_behind_the_cut_are_forgotten() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for epoch in range(4):
        append(log, b"a", leader_epoch=epoch)
        append(log, b"b", leader_epoch=epoch)
    truncate_to(log, 5, NOW_MS)
    assert log.leader_epochs.entries == [(0, 0), (1, 2), (2, 4)]
    truncate_to(log, 4, NOW_MS)
    assert log.leader_epochs.entries == [(0, 0), (1, 2)]


def test_an_epoch_without_records_is_forgotten_by_a_cut_at_the_end() -> None:
    log = open_log(new_disk(), DIRECTORY)
    append(log, b"a", leader_epoch=1)
    log.leader_epochs.assign(2, 1)
    assert not truncate_to(log, 1, NOW_MS)
    assert log.leader_epochs.entries == [(1, 0)]


def test_producers_go_back_to_what_the_log_still_holds() -> None:
    log = open_log(new_disk(), DIRECTORY, CONFIG)
    for sequence in range(12):
        append_numbered(log, sequence, b"v" * 50)
    append_numbered(log, 0, b"v", producer_id=8)
    truncate_to(log, 7, NOW_MS)
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 12, b"v")
    assert append_numbered(log, 6, b"v" * 50).is_duplicate
    assert append_numbered(log, 7, b"v").base_offset == 7
    assert log.producer_states.entry(8) is None


def test_producers_in_front_of_the_log_start_are_remembered_as_after_a_restart() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    append_numbered(log, 0, b"v", transactional=True)
    append(log, b"a")
    append(log, b"b")
    log.raise_high_watermark(3)
    delete_records_before(log, 1)
    truncate_to(log, 2, NOW_MS)
    log.raise_high_watermark(2)
    log.flush()
    restarted = open_log(disk, DIRECTORY, recovery_point=2, log_start_offset=1)
    restarted.raise_high_watermark(2)
    for each in (restarted, log):
        assert (each.log_start_offset, each.last_stable_offset) == (1, 1)
        assert append_numbered(each, 0, b"v", transactional=True).is_duplicate


def test_the_high_watermark_rises_and_only_a_truncation_takes_it_back() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for _ in range(5):
        append(log, b"v")
    log.raise_high_watermark(4)
    log.raise_high_watermark(2)
    assert log.high_watermark == 4
    log.raise_high_watermark(9)
    assert log.high_watermark == 5  # Never behind the log's end.
    truncate_to(log, 3, NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 3, 3)
    truncate_fully(log, 7, NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (7, 7, 7)


def test_no_snapshot_stays_that_reaches_behind_the_cut() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, CONFIG)
    for sequence in range(12):
        append_numbered(log, sequence, b"v" * 50)
    assert max(list_snapshots(disk, DIRECTORY)) > 5
    truncate_to(log, 5, NOW_MS)
    assert max(list_snapshots(disk, DIRECTORY)) <= 5


@given(st.integers(0, 9), st.integers(-1, 12))
def test_times_are_searched_as_if_the_rest_had_never_been(offset: int, after_ms: int) -> None:
    log = three_segments()
    truncate_to(log, offset, NOW_MS)
    expected = (NOW_MS + max(after_ms, 0), max(after_ms, 0)) if after_ms < offset else None
    if offset == 0:
        expected = None
    assert log.offset_for_timestamp(NOW_MS + after_ms) == expected


# -- crashes and failures ------------------------------------------------------------------------


class Checkpointed:
    """A log with the checkpoint of its recovery point, as a log directory keeps it."""

    def __init__(self, disk: FaultyDisk, recovery_point: int = 0) -> None:
        self.recovery_point = recovery_point
        self.log = LogLoader(
            PARTITION,
            DIRECTORY,
            CONFIG,
            disk,
            HandleCache(disk, 16),
            now_ms=NOW_MS,
            recovery_point=recovery_point,
            keep_recovery_point=self.keep,
        ).load()

    def keep(self, offset: int) -> None:
        self.recovery_point = offset


@pytest.mark.parametrize("cut", [0, 2, 3, 5, 7])
def test_what_was_truncated_stays_away_after_a_crash(cut: int) -> None:
    for seed in range(rounds(small=4, full=40)):
        disk = new_disk(seed)
        checkpointed = Checkpointed(disk)
        log = checkpointed.log
        follow(log, *(leader_batch(offset, b"old" * 25) for offset in range(9)))
        log.flush()
        checkpointed.keep(log.recovery_point)
        truncate_to(log, cut, NOW_MS)
        follow(
            log, *(leader_batch(offset, b"new" * 25, leader_epoch=1) for offset in (cut, cut + 1))
        )
        if seed % 2:
            log.flush()
        disk = disk.crash(random.Random(seed))
        found = read_records(Checkpointed(disk, checkpointed.recovery_point).log, 0)
        values = [(record.value or b"")[:3] for record in found]
        assert values[:cut] == [b"old"] * cut
        assert set(values[cut:]) <= {b"new"}
        if seed % 2:
            assert len(values) == cut + 2


@pytest.mark.parametrize("cut", [2, 3, 5])
def test_power_cut_in_the_midst_of_truncation_leaves_a_prefix(cut: int) -> None:
    change_count = 0
    while True:
        disk = new_disk(change_count)
        checkpointed = Checkpointed(disk)
        log = checkpointed.log
        follow(log, *(sized_batch(offset, 100) for offset in range(9)))
        log.flush()
        checkpointed.keep(log.recovery_point)
        power_cut = PowerCut(change_count)
        disk.before_operation = power_cut
        try:
            truncate_to(log, cut, NOW_MS)
        except SimulatedCrash:
            pass
        else:
            break
        disk = disk.crash(random.Random(change_count))
        found = Checkpointed(disk, checkpointed.recovery_point).log
        assert cut <= found.log_end_offset <= 9
        assert offsets(found) == list(range(found.log_end_offset))
        change_count += 1
    assert change_count > 5


@pytest.mark.parametrize("operation", ["sync", "truncate", "rename", "sync_dir"])
def test_a_log_whose_truncation_failed_takes_no_more_writes(operation: str) -> None:
    disk = new_disk()
    log = three_segments(disk)
    disk.faults = [Fault({operation}, hit_count_max=1)]
    with pytest.raises(LogStorageError):
        truncate_to(log, 4, NOW_MS)
    with pytest.raises(LogStorageError):
        append(log, b"v")
