"""Appending to a log: rolling, following a leader, producers that repeat, disks that refuse."""

import random

import pytest

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
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import (
    InvalidProducerEpochError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
)
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.records import CorruptRecordError, Record, encode_batch


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
