"""What looking for forgotten batches costs at most, and what happens when it fails."""

from __future__ import annotations

import pytest

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    append,
    append_numbered,
    new_disk,
    open_log,
    reopened,
    wrote,
)
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.append.forgotten_batches import READ_BYTES, READS_MAX
from headwater.storage.errors import LogStorageError, OutOfOrderSequenceError
from headwater.storage.log_config import LogConfig
from headwater.storage.producers.entry import SEQUENCE_MAX


def log_reads(disk: FaultyDisk) -> int:
    """How often log files were read since the last time of asking."""
    count = sum(
        operation == "read" and path.endswith(".log") for operation, path in disk.operations
    )
    disk.operations.clear()
    return count


def test_a_producer_is_searched_for_once() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(10, 13):
        append_numbered(log, sequence, b"v")
    log = reopened(log, disk)
    log_reads(disk)
    append_numbered(log, 10, b"v")
    assert log_reads(disk) > 0
    for sequence in (11, 12):
        append_numbered(log, sequence, b"v")
    for sequence in range(10):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v")
    assert log_reads(disk) == 0


def test_a_search_in_vain_is_not_made_again() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for _ in range(20):
        append(log, b"other")
    append_numbered(log, 100, b"v")
    log = reopened(log, disk)
    log_reads(disk)
    counts = []
    for sequence in (99, 98, 99):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v")
        counts.append(log_reads(disk))
    assert counts[0] > 0
    assert counts[1:] == [0, 0]


def test_neither_gaps_nor_new_producers_cause_a_search() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(3):
        append_numbered(log, sequence, b"v")
    log = reopened(log, disk)
    append_numbered(log, 50, b"v", producer_id=8)
    append_numbered(log, 0, b"v", producer_epoch=1, producer_id=9)
    log_reads(disk)
    for sequence in (4, 1_000, SEQUENCE_MAX // 2):  # A batch is missing.
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v")
    with pytest.raises(OutOfOrderSequenceError):  # A new epoch begins at 0.
        append_numbered(log, 1, b"v", producer_epoch=1)
    for sequence in (49, 48, 52):
        with pytest.raises(OutOfOrderSequenceError):
            append_numbered(log, sequence, b"v", producer_id=8)
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, SEQUENCE_MAX, b"v", producer_epoch=1, producer_id=9)
    for sequence in range(3, 8):
        append_numbered(log, sequence, b"v")
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 2, b"v")
    assert log_reads(disk) == 0


@pytest.mark.parametrize("index_interval_bytes", [1, 4096, 1 << 30])
def test_a_search_ends_when_its_reads_are_used_up(index_interval_bytes: int) -> None:
    disk = new_disk()
    config = LogConfig(index_interval_bytes=index_interval_bytes, segment_bytes=1 << 20)
    log = open_log(disk, DIRECTORY, config)
    append_numbered(log, 0, b"far away")
    for _ in range(READS_MAX + 10):
        append(log, bytes(READ_BYTES))
    append_numbered(log, 1, b"v")
    log = reopened(log, disk, config)
    log_reads(disk)
    log.segments.active.find(log.log_end_offset - 1)  # As any reader finds its place.
    find_reads = log_reads(disk)
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 0, b"far away")
    assert log_reads(disk) == find_reads + READS_MAX


def test_large_batches_are_stepped_over() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    value = bytes(900_000)
    for sequence in range(5):
        append_numbered(log, sequence, value)
        append(log, value)
    log = reopened(log, disk)
    log_reads(disk)
    for sequence in range(5):
        assert wrote(append_numbered(log, sequence, value)) == (True, 2 * sequence, 2 * sequence)
    assert log_reads(disk) <= 12


def test_many_small_batches_in_between() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(5):
        append_numbered(log, sequence, b"v")
        for _ in range(1_000):
            append(log, b"other")
    log = reopened(log, disk)
    for sequence in range(5):
        again = append_numbered(log, sequence, b"v")
        assert wrote(again) == (True, 1001 * sequence, 1001 * sequence)


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_disk_that_cannot_be_read_is_not_the_producers_fault() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    for sequence in range(3):
        append_numbered(log, sequence, b"v")
    log = reopened(log, disk)
    disk.faults = [Fault({"read"}, DIRECTORY, hit_count_max=1)]
    with pytest.raises(LogStorageError, match="could not be read"):
        append_numbered(log, 0, b"v")
    assert wrote(append_numbered(log, 0, b"v")) == (True, 0, 0)


@pytest.mark.parametrize("length", [0, -1, 20, 30, 1 << 30])
def test_a_damaged_header_ends_the_search(length: int) -> None:
    disk, config = new_disk(), LogConfig(index_interval_bytes=1)
    log = open_log(disk, DIRECTORY, config)
    for sequence in range(3):
        append_numbered(log, sequence, b"v")
    log = reopened(log, disk, config)
    log.segments.active.log.write_at(8, length.to_bytes(4, "big", signed=True))
    with pytest.raises(OutOfOrderSequenceError):
        append_numbered(log, 0, b"v")
    assert log.log_end_offset == 3
