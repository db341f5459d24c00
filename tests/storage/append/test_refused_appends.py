"""Disks that refuse a write: the log is then as it was before, or takes no more writes."""

import errno
import random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    append_numbered,
    batch_of,
    end_transaction,
    leader_batch,
    new_disk,
    open_log,
    read_records,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.errors import (
    LogStorageError,
)
from headwater.storage.indexes import index_file
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog


def new_log(config: LogConfig | None = None, disk: FaultyDisk | None = None) -> PartitionLog:
    return open_log(disk or new_disk(), DIRECTORY, config)


def follow(log: PartitionLog, batch: bytes) -> None:
    log.append_as_follower(batch, now_ms=NOW_MS)


def base_offsets(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def state_of(log: PartitionLog, disk: FaultyDisk) -> tuple[object, ...]:
    """What is in the log and its indexes, be it in their files or waiting for that."""
    segment = log.segments.active
    indexes = (segment.offset_index.entries(), segment.time_index.entries())
    return disk.contents()[segment.log.path], *indexes


@patch.object(index_file, "WAITING_ENTRIES_MAX", 1)
def test_a_disk_that_fills_up_at_any_byte_leaves_the_log_as_it_was() -> None:
    size = len(batch_of(b"refused", producer_id=7, producer_epoch=0, base_sequence=3))
    for room in range(size + 8 + 12):  # The batch and an entry in each of two indexes.
        disk = new_disk(room)
        log = new_log(LogConfig(index_interval_bytes=0), disk)
        for sequence in range(3):
            append_numbered(log, sequence, b"before", timestamp=NOW_MS - 3 + sequence)
        before = state_of(log, disk)
        disk.capacity_bytes = disk.used_bytes + room
        with pytest.raises(LogStorageError, match="No space left"):
            append_numbered(log, 3, b"refused", timestamp=NOW_MS + 1)
        assert state_of(log, disk) == before
        assert (log.log_end_offset, log.failure) == (3, None)
        disk.capacity_bytes = None
        assert append_numbered(log, 3, b"taken").base_offset == 3
        assert [r.value for r in read_records(log, 0)] == [*[b"before"] * 3, b"taken"]


@given(st.integers(0, 40), st.booleans(), st.integers(0, 1000))
def test_appends_around_a_failing_write_stay_whole(skip: int, torn: bool, seed: int) -> None:
    disk = new_disk(seed)
    log = new_log(LogConfig(index_interval_bytes=100, segment_bytes=700), disk)
    disk.faults = [Fault({"write", "create"}, skip_count=skip, hit_count_max=1, torn=torn)]
    expected = []
    for number in range(15):
        value = b"%d" % number * 30
        try:
            log.append_as_follower(leader_batch(log.log_end_offset, value), now_ms=NOW_MS)
            expected.append(value)
        except LogStorageError:
            continue
    assert log.failure is None
    assert [r.value for r in read_records(log, 0)] == expected


def test_a_failed_write_in_a_new_segment_leaves_it_empty() -> None:
    disk = new_disk()
    log = new_log(LogConfig(segment_bytes=250), disk)
    for offset in range(2):
        follow(log, sized_batch(offset, 100))
    disk.faults = [Fault({"write"}, under=f"{DIRECTORY}/{2:020}.log", torn=True, hit_count_max=1)]
    with pytest.raises(LogStorageError):
        follow(log, sized_batch(2, 100))
    assert (base_offsets(log), log.log_end_offset) == ([0, 2], 2)
    follow(log, sized_batch(2, 100))
    assert [r.offset for r in read_records(log, 0)] == [0, 1, 2]


def test_a_log_that_cannot_be_cut_back_takes_no_more_writes() -> None:
    disk = new_disk()
    log = new_log(disk=disk)
    append(log, b"kept")
    disk.faults = [Fault({"write", "truncate"}, torn=True)]
    with pytest.raises(LogStorageError, match="takes no more writes"):
        append(log, b"lost")
    disk.faults = []
    assert log.failure is not None
    for attempt in (lambda: append(log, b"v"), lambda: follow(log, leader_batch(1, b"v"))):
        with pytest.raises(LogStorageError):
            attempt()
    with pytest.raises(LogStorageError):
        log.flush()
    assert [r.value for r in read_records(log, 0)] == [b"kept"]
    log.close()
    assert new_log(disk=disk).log_end_offset == 1


def test_an_abort_that_cannot_be_indexed_ends_the_log() -> None:
    """The marker is in the log: to go on would let readers see what was aborted."""
    disk = new_disk()
    log = new_log(disk=disk)
    append_numbered(log, 0, b"v", transactional=True)
    disk.faults = [Fault({"create"}, under=f"{DIRECTORY}/{0:020}.txnindex")]
    with pytest.raises(LogStorageError, match="takes no more writes"):
        end_transaction(log, 7, commit=False)
    disk.faults = []
    log.raise_high_watermark(2)
    assert log.last_stable_offset == 0
    restarted = new_log(disk=disk)
    assert [each.first_offset for each in restarted.aborted_transactions(0, 2)] == [0]


def _fill_up_to_a_failed_roll(disk: FaultyDisk, suffix: str) -> PartitionLog:
    """A log of 600 of 1000 bytes, whose disk then refused to create a file of the next segment."""
    log = new_log(LogConfig(segment_bytes=1000, index_interval_bytes=1), disk)
    for offset in range(6):
        follow(log, sized_batch(offset, 100))
    assert [r.offset for r in read_records(log, 0)] == list(range(6))
    disk.faults = [Fault({"create"}, under=f"{DIRECTORY}/{6:020}{suffix}", error=errno.ENOSPC)]
    with pytest.raises(LogStorageError, match="new segment"):
        follow(log, sized_batch(6, 500))
    disk.faults = []
    return log


def test_a_roll_that_can_be_neither_done_nor_undone_ends_the_log() -> None:
    disk = new_disk()
    log = new_log(LogConfig(segment_bytes=1000), disk)
    follow(log, sized_batch(0, 600))
    disk.faults = [Fault({"create"}, under=f"{DIRECTORY}/{1:020}.index"), Fault({"remove"})]
    with pytest.raises(LogStorageError):
        follow(log, sized_batch(1, 600))
    disk.faults = []
    if log.failure is None:  # Then nothing was begun that would have to be removed.
        follow(log, sized_batch(1, 90))
    expected_end = log.log_end_offset
    assert new_log(LogConfig(segment_bytes=1000), disk).log_end_offset == expected_end


def test_a_roll_that_failed_is_made_up_for() -> None:
    for suffix in (".log", ".index", ".timeindex", ".snapshot"):
        log = _fill_up_to_a_failed_roll(new_disk(), suffix)
        follow(log, sized_batch(6, 500))
        assert base_offsets(log) == [0, 6]
        assert [r.offset for r in read_records(log, 0)] == list(range(7))


def test_after_a_failed_roll_the_old_segment_goes_on() -> None:
    log = _fill_up_to_a_failed_roll(new_disk(), ".snapshot")
    assert [r.offset for r in read_records(log, 0)] == list(range(6))
    for offset in (6, 7, 8):
        follow(log, sized_batch(offset, 90))
    assert [r.offset for r in read_records(log, 0)] == list(range(9))


def test_what_a_failed_roll_left_behind_is_not_back_after_a_crash() -> None:
    for seed in range(30):
        disk = new_disk(seed)
        log = _fill_up_to_a_failed_roll(disk, ".index")
        follow(log, sized_batch(6, 90))
        log.flush()
        recovery_point = log.recovery_point
        disk = disk.crash(random.Random(seed))
        config = LogConfig(segment_bytes=1000)
        log = open_log(disk, DIRECTORY, config, recovery_point=recovery_point)
        assert log.log_end_offset == 7, seed


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_a_failed_roll_left_behind_hides_no_records(is_clean: bool) -> None:
    disk = new_disk()
    log = _fill_up_to_a_failed_roll(disk, ".index")
    follow(log, sized_batch(6, 90))
    log.flush()
    if is_clean:
        log.close()
    log = open_log(
        disk, DIRECTORY, LogConfig(segment_bytes=1000), is_clean=is_clean, recovery_point=7
    )
    assert log.log_end_offset == 7
