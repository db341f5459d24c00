"""Opening a log: what is read, what is rebuilt, what is cut, what is kept."""

from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    SMALL_SEGMENTS,
    append,
    append_numbered,
    log_of_batches,
    new_disk,
    offsets_of,
    open_log,
    path_of,
    read_records,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.recovery.loader import LogLoader


def closed(disk: FaultyDisk, batch_count: int = 18) -> PartitionLog:
    log = log_of_batches(disk, batch_count)
    log.close()
    return log


def open_clean(disk: FaultyDisk, recovery_point: int = 18) -> PartitionLog:
    return open_log(disk, DIRECTORY, SMALL_SEGMENTS, is_clean=True, recovery_point=recovery_point)


def reads_of(disk: FaultyDisk, suffix: str) -> list[str]:
    """The base offsets of the files of this kind that were read."""
    return sorted(
        {
            path[-20 - len(suffix) : -len(suffix)].lstrip("0") or "0"
            for operation, path in disk.operations
            if operation == "read" and path.endswith(suffix)
        }
    )


# -- a clean start -------------------------------------------------------------------------------


def test_a_new_log_starts_at_its_log_start_offset() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, log_start_offset=7)
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    assert append(log, b"v").base_offset == 7


def test_a_clean_start_reads_no_records_but_the_last_few() -> None:
    disk = new_disk()
    closed(disk)
    disk.operations.clear()
    log = open_clean(disk)
    assert reads_of(disk, ".log") == ["15"]
    assert "sync" not in {operation for operation, _ in disk.operations}
    assert (log.log_end_offset, log.flushed_offset) == (18, 18)
    assert offsets_of(log) == list(range(18))


def test_a_clean_start_restores_what_a_close_left() -> None:
    disk = new_disk()
    log = closed(disk)
    latest = [segment.latest for segment in log.segments]
    reopened = open_clean(disk)
    assert [segment.latest for segment in reopened.segments] == latest
    assert [s.next_offset for s in reopened.segments] == [5, 10, 15, 18]
    assert reopened.leader_epochs.entries == [(0, 0)]
    assert list_snapshots(disk, DIRECTORY) == [5, 10, 15, 18]
    append(reopened, b"v" * 30)
    assert offsets_of(reopened) == list(range(19))


def test_closing_and_opening_again_and_again_keeps_everything() -> None:
    disk = new_disk()
    for count in range(1, 30, 4):
        log = open_clean(disk, count)
        while log.log_end_offset < count:
            append(log, b"v" * 40)
        log.close()
    assert offsets_of(open_clean(disk, 29)) == list(range(29))


def test_on_a_real_disk_too(tmp_path: Path) -> None:
    files = DiskFiles()
    directory = f"{tmp_path}/topic-0"
    log = open_log(files, directory, SMALL_SEGMENTS, handle_count=3)
    for number in range(40):
        append(log, b"%d" % number * 10)
    log.close()
    log = open_log(files, directory, SMALL_SEGMENTS, is_clean=True, handle_count=3)
    assert len(read_records(log, 0)) == 40
    log.close()
    log = open_log(files, directory, SMALL_SEGMENTS, handle_count=3)
    assert [r.value for r in read_records(log, 0)] == [b"%d" % n * 10 for n in range(40)]
    log.close()


# -- damage after a clean stop -------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("base_offset", [0, 10, 15])
@pytest.mark.parametrize("damage", ["torn", "preallocated", "garbage"])
def test_an_index_that_is_seen_to_be_wrong_is_rebuilt(
    suffix: str, base_offset: int, damage: str
) -> None:
    disk = new_disk()
    closed(disk)
    sound = disk.contents()
    file = disk.open(path_of(base_offset, suffix))
    if damage == "torn":
        file.truncate(file.size() - 1)
    elif damage == "preallocated":
        file.truncate(4080)
    else:
        file.write_at(0, b"\xff" * file.size())
    log = open_clean(disk)
    assert offsets_of(log) == list(range(18))
    log.close()
    assert disk.contents()[path_of(base_offset, suffix)] == sound[path_of(base_offset, suffix)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_missing_does_not_hide_records(suffix: str) -> None:
    disk = new_disk()
    closed(disk)
    disk.remove(path_of(5, suffix))
    log = open_clean(disk)
    assert offsets_of(log) == list(range(18))


def test_a_damaged_snapshot_falls_back_to_an_older_one() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    for sequence in range(12):
        append_numbered(log, sequence, b"v" * 40)
    log.close()
    for offset in list_snapshots(disk, DIRECTORY)[-2:]:
        file = disk.open(path_of(offset, ".snapshot"))
        file.write_at(file.size() - 1, b"\xaa")
    log = open_clean(disk, 12)
    assert append_numbered(log, 11, b"v" * 40).is_duplicate
    assert append_numbered(log, 12, b"v" * 40).base_offset == 12


def test_lost_leader_epochs_are_found_again_in_the_records() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    for epoch in (2, 2, 5, 5, 9):
        append(log, b"v" * 200, leader_epoch=epoch)
    log.close()
    disk.open(f"{DIRECTORY}/leader-epoch-checkpoint").write_at(0, b"x")
    assert open_clean(disk, 5).leader_epochs.entries == [(2, 0), (5, 2), (9, 4)]


def test_a_clean_log_that_lost_its_last_batch_does_not_start_over() -> None:
    disk = new_disk()
    closed(disk)
    entry = open_clean(disk).segments.active.offset_index.last_entry
    disk.open(path_of(15, ".log")).truncate(entry.position)
    assert open_clean(disk).log_end_offset == entry.offset


# -- the log start -------------------------------------------------------------------------------


def test_segments_in_front_of_the_log_start_are_removed() -> None:
    disk = new_disk()
    closed(disk)
    log = open_log(
        disk, DIRECTORY, SMALL_SEGMENTS, is_clean=True, recovery_point=18, log_start_offset=11
    )
    assert [segment.base_offset for segment in log.segments] == [10, 15]
    assert (log.log_start_offset, offsets_of(log)) == (11, list(range(11, 18)))
    assert log.leader_epochs.entries == [(0, 11)]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_ends_before_its_start_goes_on_there_empty(is_clean: bool) -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    append_numbered(log, 0, b"v")
    log.close()
    log = open_log(
        disk, DIRECTORY, SMALL_SEGMENTS, is_clean=is_clean, recovery_point=1, log_start_offset=100
    )
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (100, 100, 0)
    assert (len(log.producer_states), log.leader_epochs.entries) == (0, [])
    assert append(log, b"v").base_offset == 100


def test_a_log_that_came_back_shorter_lowers_its_recovery_point() -> None:
    disk = new_disk()
    log_of_batches(disk).flush()
    disk.open(path_of(15, ".log")).truncate(150)
    kept: list[int] = []
    LogLoader(
        PARTITION,
        DIRECTORY,
        SMALL_SEGMENTS,
        disk,
        HandleCache(disk, 16),
        now_ms=NOW_MS,
        recovery_point=18,
        keep_recovery_point=kept.append,
    ).load()
    assert kept == [16]


@pytest.mark.parametrize("stray", [3, 12, 30])
def test_snapshots_that_belong_to_no_segment_are_removed(stray: int) -> None:
    disk = new_disk()
    closed(disk)
    disk.rename(path_of(5, ".snapshot"), path_of(stray, ".snapshot"))
    open_clean(disk)
    assert list_snapshots(disk, DIRECTORY) == [10, 15, 18]
