"""Appending to a log: rolling, following a leader, producers that repeat, disks that refuse."""

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.faulty_disk import Fault, FaultyDisk
from headwater.storage.errors import (
    InvalidProducerEpochError,
    LogStorageError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
)
from headwater.storage.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.log_loader import LogLoader
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import CorruptRecordError, Record, encode_batch
from tests.support.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
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


def new_log(config: LogConfig | None = None, disk: FaultyDisk | None = None) -> PartitionLog:
    return open_log(disk or new_disk(), DIRECTORY, config)


def follow(log: PartitionLog, batch: bytes) -> None:
    log.append_as_follower(batch, now_ms=NOW_MS)


def base_offsets(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# -- rolling -------------------------------------------------------------------------------------


def test_a_new_segment_starts_when_the_old_one_is_full() -> None:
    log = new_log(LogConfig(segment_bytes=250))
    for offset in range(5):
        follow(log, sized_batch(offset, 100))
    assert base_offsets(log) == [0, 2, 4]
    assert [segment.size_bytes for segment in log.segments] == [200, 200, 100]
    assert [segment.next_offset for segment in log.segments] == [2, 4, 5]


def test_a_new_segment_starts_after_segment_ms_of_message_time() -> None:
    log = new_log(LogConfig(segment_ms=1000))
    for timestamp in (NOW_MS, NOW_MS + 1000, NOW_MS + 900, NOW_MS + 1001, NOW_MS + 2001):
        append(log, b"v", timestamp=timestamp)
    assert base_offsets(log) == [0, 3]


def test_jitter_spreads_rolls_by_at_most_its_setting() -> None:
    config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
    waits = set()
    for seed in range(12):
        disk = new_disk()
        log = LogLoader(
            PARTITION,
            DIRECTORY,
            config,
            disk,
            HandleCache(disk, 16),
            now_ms=NOW_MS,
            random_source=random.Random(seed),
        ).load()
        append(log, b"v")
        segment = log.roll(NOW_MS)
        append(log, b"v")
        waited = next(
            wait
            for wait in range(1002)
            if segment.should_roll(70, 2, NOW_MS + wait, NOW_MS, config)
        )
        assert 600 < waited <= 1001
        waits.add(waited)
    assert len(waits) > 6


def test_a_new_segment_starts_when_an_index_is_full() -> None:
    log = new_log(LogConfig(index_interval_bytes=0, segment_index_bytes=40))
    for _ in range(14):
        append(log, b"v")
    assert base_offsets(log) == [0, 6, 12]
    assert [segment.offset_index.size_bytes for segment in log.segments] == [40, 40, 8]


def test_a_new_segment_starts_where_relative_offsets_would_overflow() -> None:
    log = new_log()
    follow(log, leader_batch(0, b"a"))
    follow(log, leader_batch(2**31 - 1, b"b"))
    assert base_offsets(log) == [0]
    follow(log, leader_batch(2**31, b"c"))
    assert base_offsets(log) == [0, 2**31]
    assert [r.value for r in read_records(log, 0)] == [b"a", b"b", b"c"]


def test_a_batch_that_lies_too_far_ahead_gets_a_segment_of_its_own() -> None:
    log = new_log()
    follow(log, leader_batch(0, b"a"))
    follow(log, leader_batch(2**31 + 5, b"b"))
    assert base_offsets(log) == [0, 2**31 + 5]
    assert [r.offset for r in read_records(log, 0)] == [0, 2**31 + 5]


def test_a_batch_too_far_ahead_survives_a_crash_once_it_is_flushed() -> None:
    disk, kept = new_disk(), [0]

    def load(disk: FaultyDisk) -> PartitionLog:
        return LogLoader(
            PARTITION,
            DIRECTORY,
            LogConfig(),
            disk,
            HandleCache(disk, 16),
            now_ms=NOW_MS,
            recovery_point=kept[-1],
            keep_recovery_point=kept.append,
        ).load()

    log = load(disk)
    follow(log, leader_batch(0, b"a"))
    follow(log, leader_batch(2**31 + 5, b"b"))
    log.flush()
    assert load(disk.crash(random.Random(1))).log_end_offset == 2**31 + 6


def test_batches_too_far_from_each_other_may_come_in_one_answer() -> None:
    log = new_log()
    follow(log, leader_batch(0, b"a") + leader_batch(2**31 + 5, b"b"))
    assert [r.offset for r in read_records(log, 0)] == [0, 2**31 + 5]


def test_rolling_an_empty_segment_keeps_it() -> None:
    log = new_log()
    assert log.roll(NOW_MS) is log.segments.active
    append(log, b"v")
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert base_offsets(log) == [0, 1]


def test_segments_leave_no_gap_even_behind_a_gap_of_offsets() -> None:
    log = new_log(LogConfig(segment_bytes=250))
    for offset in (0, 40, 41, 90, 91):
        follow(log, sized_batch(offset, 100))
    assert base_offsets(log) == [0, 41, 91]
    assert [r.offset for r in read_records(log, 1)] == [40, 41, 90, 91]


# -- following -----------------------------------------------------------------------------------


def test_a_follower_keeps_the_leaders_bytes() -> None:
    log = new_log()
    data = leader_batch(0, b"a", b"b", leader_epoch=3) + leader_batch(7, b"c", leader_epoch=5)
    follow(log, data)
    region = log.read(0, 1 << 20).region
    assert region is not None and region.read() == data
    assert log.log_end_offset == 8
    assert log.leader_epochs.entries == [(3, 0), (5, 7)]


def test_a_follower_takes_no_batch_twice_and_none_that_is_damaged() -> None:
    log = new_log()
    follow(log, leader_batch(0, b"a", b"b"))
    with pytest.raises(OffsetOutOfRangeError):
        follow(log, leader_batch(1, b"b"))
    with pytest.raises(OffsetOutOfRangeError):
        follow(log, leader_batch(3, b"d") + leader_batch(2, b"c"))
    damaged = bytearray(leader_batch(2, b"c"))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        follow(log, bytes(damaged))
    follow(log, b"")
    assert (log.log_end_offset, len(read_records(log, 0))) == (2, 2)


def test_a_follower_remembers_the_leaders_producers() -> None:
    log = new_log()
    records = [Record(5 + number, NOW_MS, b"k", b"v") for number in range(3)]
    batch = encode_batch(records, leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=10)
    follow(log, batch)
    duplicate = append_numbered(log, 10, b"v", b"v", b"v")
    assert (duplicate.is_duplicate, duplicate.base_offset, duplicate.last_offset) == (True, 5, 7)


# -- producers that repeat themselves ------------------------------------------------------------


def test_the_last_five_batches_are_recognised_when_they_are_sent_again() -> None:
    log = new_log()
    for sequence in range(0, 14, 2):
        append_numbered(log, sequence, b"v", b"w")
    for sequence in range(4, 14, 2):
        again = append_numbered(log, sequence, b"v", b"w")
        assert again.is_duplicate
        assert (again.base_offset, again.last_offset) == (sequence, sequence + 1)
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 2, b"v", b"w")
    assert log.log_end_offset == 14


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = new_log()
    append_numbered(log, 0, b"v", b"w")
    for sequence in (1, 3, 100):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v")
    assert append_numbered(log, 2, b"v").base_offset == 2


def test_a_newer_instance_fences_the_older_one() -> None:
    log = new_log()
    append_numbered(log, 0, b"v", producer_epoch=3)
    append_numbered(log, 0, b"v", producer_epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        append_numbered(log, 1, b"v", producer_epoch=3)
    assert log.log_end_offset == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_producers_are_remembered_across_a_restart(is_clean: bool) -> None:
    disk, config = new_disk(), LogConfig(segment_bytes=300)
    log = new_log(config, disk)
    for sequence in range(10):
        append_numbered(log, sequence, b"v" * 20)
    append_numbered(log, 0, b"v", producer_id=8)
    if is_clean:
        log.close()
    else:
        log.flush()
        disk = disk.crash(random.Random(5))
    log = open_log(disk, DIRECTORY, config, is_clean=is_clean, recovery_point=log.recovery_point)
    assert append_numbered(log, 9, b"v" * 20).base_offset == 9
    assert append_numbered(log, 0, b"v", producer_id=8).base_offset == 10
    assert log.log_end_offset == 11
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 11, b"v" * 20)
    assert append_numbered(log, 10, b"v" * 20).base_offset == 11


# -- disks that refuse ---------------------------------------------------------------------------


def test_a_disk_that_fills_up_at_any_byte_leaves_the_log_as_it_was() -> None:
    size = len(batch_of(b"refused", producer_id=7, producer_epoch=0, base_sequence=3))
    for room in range(size + 8 + 12):  # The batch and an entry in each of two indexes.
        disk = new_disk(room)
        log = new_log(LogConfig(index_interval_bytes=0), disk)
        for sequence in range(3):
            append_numbered(log, sequence, b"before")
        before = disk.contents()
        disk.capacity_bytes = disk.used_bytes + room
        with pytest.raises(LogStorageError, match="No space left"):
            append_numbered(log, 3, b"refused", timestamp=NOW_MS + 1)
        assert disk.contents() == before
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
    log.advance_high_watermark(2)
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
