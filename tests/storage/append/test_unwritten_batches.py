import pytest

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    batch_of,
    new_disk,
    open_log,
    read_records,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.append.unwritten_batches import PRODUCERS_MAX
from headwater.storage.errors import LogStorageError, OutOfOrderSequenceError
from headwater.storage.partition_log import PartitionLog


def full_log() -> tuple[PartitionLog, FaultyDisk]:
    """A log on a disk with room for a small batch and not for a large one."""
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    append(log, b"makes the files")
    disk.capacity_bytes = disk.used_bytes + 300
    return log, disk


def send(
    log: PartitionLog, sequence: int, size: int, *, producer_id: int = 7, epoch: int = 0
) -> int:
    batch = batch_of(
        bytes(size), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    return log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS).base_offset


def test_a_batch_that_fits_does_not_overtake_the_first_one_that_did_not() -> None:
    log, disk = full_log()
    with pytest.raises(LogStorageError):
        send(log, 0, 1_000)
    with pytest.raises(OutOfOrderSequenceError, match="0 was refused"):
        send(log, 1, 10)
    disk.capacity_bytes = None
    assert [send(log, 0, 1_000), send(log, 1, 10), send(log, 2, 10)] == [1, 2, 3]
    assert send(log, 1, 10) == 2  # A repetition is still one.
    assert [len(record.value or b"") for record in read_records(log, 1)] == [1_000, 10, 10]


def test_a_producer_that_was_idle_for_long_still_begins_anywhere() -> None:
    log, _ = full_log()
    assert send(log, 41, 10) == 1


def test_another_epoch_is_another_beginning() -> None:
    log, _ = full_log()
    with pytest.raises(LogStorageError):
        send(log, 0, 1_000)
    assert send(log, 0, 10, epoch=1) == 1


def test_other_producers_are_not_held_up() -> None:
    log, _ = full_log()
    with pytest.raises(LogStorageError):
        send(log, 0, 1_000)
    assert send(log, 0, 10, producer_id=8) == 1
    assert append(log, b"").base_offset == 2


def test_a_known_producer_is_held_to_its_state() -> None:
    log, disk = full_log()
    assert send(log, 0, 10) == 1
    with pytest.raises(LogStorageError):
        send(log, 1, 1_000)
    with pytest.raises(OutOfOrderSequenceError, match="does not follow 0"):
        send(log, 2, 10)
    disk.capacity_bytes = None
    assert [send(log, 1, 1_000), send(log, 2, 10)] == [2, 3]


def test_what_is_remembered_is_bounded() -> None:
    log, _ = full_log()
    for producer_id in range(PRODUCERS_MAX + 5):
        with pytest.raises(LogStorageError):
            send(log, 0, 1_000, producer_id=producer_id)
    assert len(log.unwritten.first_sequences) == PRODUCERS_MAX
    assert send(log, 1, 10, producer_id=0) == 1
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 1, 10, producer_id=PRODUCERS_MAX)
