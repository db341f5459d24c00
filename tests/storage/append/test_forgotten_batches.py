"""Batches that come again after a restart: all of the last five have the offsets they had."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    SMALL_SEGMENTS,
    append,
    append_numbered,
    batch_of,
    end_transaction,
    new_disk,
    offsets_of,
    open_log,
    path_of,
    reopened,
    wrote,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
)
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import SEQUENCE_MAX, BatchMetadata
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.storage.truncation import truncate_to
from headwater.wire.records import (
    Record,
    TimestampType,
    encode_batch,
    encode_legacy,
)
from tests.support.models.compaction import CompactedLog


def remembered(log: PartitionLog, producer_id: int = 7) -> tuple[BatchMetadata, ...]:
    entry = log.producer_states.entry(producer_id)
    assert entry is not None
    return entry.batches


# -- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(2, 4, 6, 8, 10), (10, 8, 6, 4, 2), (6, 2, 10, 4, 8)])
def test_after_a_clean_stop_all_of_the_last_five_are_recognised(order: tuple[int, ...]) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(0, 12, 2):
        append_numbered(log, sequence, b"v", b"w", timestamp=NOW_MS + sequence)
    before = remembered(log)
    log = reopened(log, disk)
    assert len(remembered(log)) == 1
    for sequence in order:
        again = append_numbered(log, sequence, b"v", b"w")
        assert wrote(again) == (True, sequence, sequence + 1)
        assert again.log_append_time_ms == NOW_MS + sequence + 1
    assert remembered(log) == before
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 0, b"v", b"w")
    assert log.log_end_offset == 12
    assert wrote(append_numbered(log, 12, b"v")) == (False, 12, 12)


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_roll_behind_the_batches_and_then_a_crash(is_power_lost: bool) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(5):
        append_numbered(log, sequence, b"v")
    log.roll(NOW_MS)
    log.flush()
    disk = disk.crash(random.Random(1)) if is_power_lost else disk.after_process_end()
    log = open_log(disk, DIRECTORY, recovery_point=log.recovery_point)
    for sequence in range(5):
        assert wrote(append_numbered(log, sequence, b"v")) == (True, sequence, sequence)
    assert offsets_of(log) == list(range(5))


def test_batches_in_segments_of_their_own() -> None:
    disk, config = new_disk(), LogConfig(segment_bytes=100)
    log = open_log(disk, DIRECTORY, config)
    for sequence in range(7):
        append_numbered(log, sequence, b"v" * 20)
        append(log, b"other")
    assert len(log.segments) == 14
    log = reopened(log, disk, config)
    for sequence in range(2, 7):
        again = append_numbered(log, sequence, b"v" * 20)
        assert wrote(again) == (True, 2 * sequence, 2 * sequence)
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 1, b"v" * 20)


def test_what_was_written_since_counts_among_the_five() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(5):
        append_numbered(log, sequence, b"v")
    log = reopened(log, disk)
    append_numbered(log, 5, b"v")
    append_numbered(log, 6, b"v")
    for sequence in (1, 0):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v")
    for sequence in range(2, 7):
        assert wrote(append_numbered(log, sequence, b"v")) == (True, sequence, sequence)
    append_numbered(log, 7, b"v")
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 2, b"v")
    assert log.log_end_offset == 8


@pytest.mark.parametrize("first", [SEQUENCE_MAX - count for count in range(11)])
def test_sequence_numbers_that_start_over(first: int) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    sequences = [(first + 2 * number) & SEQUENCE_MAX for number in range(5)]
    for sequence in sequences:
        append_numbered(log, sequence, b"v", b"w")
    log = reopened(log, disk)
    for number, sequence in enumerate(sequences):
        again = append_numbered(log, sequence, b"v", b"w")
        assert wrote(again) == (True, 2 * number, 2 * number + 1)
    assert log.log_end_offset == 10


def test_only_exactly_the_same_sequences_are_a_repetition() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in (10, 12, 14):
        append_numbered(log, sequence, b"v", b"w")
    log = reopened(log, disk)
    for sequence, count in ((10, 1), (11, 1), (11, 2), (10, 3), (10, 4), (8, 2), (13, 2), (9, 9)):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, *[b"v"] * count)
    assert append_numbered(log, 10, b"v", b"w").is_duplicate
    assert log.log_end_offset == 6


@pytest.mark.parametrize("order", list(permutations((1, 2, 3)))[::2])
def test_producers_transactions_and_plain_batches_in_between(order: tuple[int, ...]) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    offsets: dict[tuple[int, int], int] = {}
    for sequence in range(8):
        for producer_id in order:
            result = append_numbered(
                log, sequence, b"v", producer_id=producer_id, transactional=producer_id != 1
            )
            offsets[producer_id, sequence] = result.base_offset
            append(log, b"plain")
            if producer_id != 1 and sequence % 2:
                end_transaction(log, producer_id, commit=producer_id == 2)
    end_offset = log.log_end_offset
    log = reopened(log, disk, SMALL_SEGMENTS)
    for (producer_id, sequence), offset in offsets.items():
        if sequence >= 3:
            again = append_numbered(
                log, sequence, b"v", producer_id=producer_id, transactional=producer_id != 1
            )
            assert wrote(again) == (True, offset, offset)
    assert log.log_end_offset == end_offset


def test_a_repetition_of_another_epoch_is_none() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    # The numbers of the first epoch lead right up to those of the second.
    for sequence in (SEQUENCE_MAX - 1, SEQUENCE_MAX):
        append_numbered(log, sequence, b"v", producer_epoch=3)
    for sequence in (0, 1):
        append_numbered(log, sequence, b"v", producer_epoch=4)
    log = reopened(log, disk)
    for sequence in (SEQUENCE_MAX, SEQUENCE_MAX - 1):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v", producer_epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        append_numbered(log, SEQUENCE_MAX, b"v", producer_epoch=3)
    with pytest.raises(OutOfOrderSequenceError, match="began epoch 5"):
        append_numbered(log, 1, b"v", producer_epoch=5)
    assert wrote(append_numbered(log, 0, b"v", producer_epoch=4)) == (True, 2, 2)
    assert [batch.last_sequence for batch in remembered(log)] == [0, 1]


def test_a_truncation_forgets_and_the_log_recalls() -> None:
    log = open_log(new_disk(), DIRECTORY)
    for sequence in range(10):
        append_numbered(log, sequence, b"v")
        if sequence in (5, 8):
            log.roll(NOW_MS)
    for end_offset in (9, 6):
        truncate_to(log, end_offset, NOW_MS)
        assert len(remembered(log)) == 1
        for sequence in range(end_offset - 5, end_offset):
            assert wrote(append_numbered(log, sequence, b"v")) == (True, sequence, sequence)
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, end_offset - 6, b"v")
    assert log.log_end_offset == 6


def test_the_leaders_time_is_told_once_more() -> None:
    disk = new_disk()
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = open_log(disk, DIRECTORY, config)
    for sequence in range(3):
        batch = batch_of(b"v", producer_id=7, producer_epoch=0, base_sequence=sequence)
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS + 1_000 * sequence)
    log = reopened(log, disk, config)
    batch = batch_of(b"v", producer_id=7, producer_epoch=0, base_sequence=1)
    again = log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS + 60_000)
    assert (again.base_offset, again.log_append_time_ms) == (1, NOW_MS + 1_000)


# -- what the log no longer has ------------------------------------------------------------------


def test_deleted_records_are_not_found() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(0, 10, 2):
        append_numbered(log, sequence, b"v", b"w")
    log.raise_high_watermark(10)
    delete_records_before(log, 5)
    log = reopened(log, disk)
    for sequence in (0, 2):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v", b"w")
    # Of this one a record is left.
    assert wrote(append_numbered(log, 4, b"v", b"w")) == (True, 4, 5)


def test_a_producer_of_whom_no_record_is_left() -> None:
    disk, config = new_disk(), LogConfig(segment_bytes=100)
    log = open_log(disk, DIRECTORY, config)
    for sequence in range(3):
        append_numbered(log, sequence, b"v" * 20)
    for _ in range(3):
        append(log, b"other" * 4)
    log.raise_high_watermark(log.log_end_offset)
    delete_records_before(log, 5)
    apply_retention(log, NOW_MS)
    assert log.segments[0].base_offset == 5
    log = reopened(log, disk, config)
    assert append_numbered(log, 2, b"v" * 20).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 1, b"v" * 20)


def test_compaction_ends_the_search_where_it_removed_a_batch() -> None:
    compacted = CompactedLog(new_disk())
    for number in range(5):
        # Only the record of the third batch is replaced later on.
        key = b"replaced" if number in (2, 4) else b"key %d" % number
        compacted.append((key, b"v"), producer_id=7)
    compacted.seal()
    compacted.compact()
    compacted.log.close()
    log = compacted.load(is_clean=True)
    assert offsets_of(log) == [0, 1, 3, 4]
    for sequence in (3, 4):
        again = append_numbered(log, sequence, b"v", leader_epoch=3)
        assert wrote(again) == (True, sequence, sequence)
    for sequence in (0, 1, 2):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v", leader_epoch=3)
    assert len(remembered(log)) == 2


def test_batches_that_compaction_has_thinned_out_are_recognised() -> None:
    compacted = CompactedLog(new_disk())
    for number in range(4):
        # Every batch but the last loses its first and its last record.
        compacted.append((b"a", b"v"), (b"key %d" % number, b"v"), (b"b", b"v"), producer_id=7)
    compacted.append((b"a", b"v"), (b"b", b"v"))
    compacted.seal()
    compacted.compact()
    compacted.log.close()
    log = compacted.load(is_clean=True)
    assert offsets_of(log) == [1, 4, 7, 10, 12, 13]
    for sequence in (0, 3, 6, 9):
        again = append_numbered(log, sequence, b"v", b"v", b"v", leader_epoch=3)
        assert wrote(again) == (True, sequence, sequence + 2)


def test_messages_of_old_formats_are_passed_over() -> None:
    disk = FaultyDisk(directories=[DIRECTORY])
    producer_id = int.from_bytes(b"ffffffff", "big")
    first = batch_of(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    # All that these hold where newer ones have a producer id is that very id.
    old = [Record(number, NOW_MS, b"f" * 40, b"f" * 40) for number in range(1, 4)]
    short = [Record(number, NOW_MS, None, b"") for number in range(4, 6)]
    second = encode_batch(
        [Record(6, NOW_MS, b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=1
    )
    data = first + encode_legacy(old, magic=1) + encode_legacy(short, magic=0) + second
    disk.open(path_of(0, ".log"), create=True).write_at(0, data)
    log = open_log(disk, DIRECTORY)
    assert log.log_end_offset == 7
    log = reopened(log, disk)
    again = append_numbered(log, 0, b"v", producer_id=producer_id)
    assert wrote(again) == (True, 0, 0)
    assert [batch.first_offset for batch in remembered(log, producer_id)] == [0, 6]
