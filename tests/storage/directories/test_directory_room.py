"""The reserve of a log directory, on a disk whose free space the test decides."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from headwater.replication.partition.write_failures import WriteFailures
from headwater.sim.campaigns.logs import new_disk, open_log
from headwater.storage.directories.directory_room import RESERVE_FILE, DirectoryRoom
from headwater.storage.disk.disk_files import DiskFiles
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog

RESERVE = 1 << 20


class SizedDisk(DiskFiles):
    """A disk of some bytes, of which the reserve takes its part."""

    def __init__(self, directory: Path, free: int) -> None:
        super().__init__()
        self.reserve = directory / RESERVE_FILE
        self.room = free

    def reserved(self) -> int:
        return self.reserve.stat().st_size if self.reserve.exists() else 0

    def free_bytes(self, path: str) -> int:
        return self.room - self.reserved()


def test_the_reserve_is_halved_with_each_shortage_and_set_aside_anew(tmp_path: Path) -> None:
    disk = SizedDisk(tmp_path, 10 * RESERVE)
    room = DirectoryRoom(disk, str(tmp_path), RESERVE)
    room.prepare()
    assert (disk.reserved(), room.is_short) == (RESERVE, False)
    for left in (RESERVE // 2, RESERVE // 4, RESERVE // 8):
        disk.room = disk.reserved()  # Others have taken all the rest.
        room.ran_out()
        assert (disk.reserved(), room.is_short) == (left, True)
        assert not room.has_room()
    disk.room = 2 * RESERVE - 1
    assert not room.has_room()
    disk.room = 2 * RESERVE
    assert room.has_room()
    assert (disk.reserved(), room.is_short) == (RESERVE, False)


def test_a_start_uses_the_reserve_only_if_there_is_no_other_room(tmp_path: Path) -> None:
    disk = SizedDisk(tmp_path, 10 * RESERVE)
    DirectoryRoom(disk, str(tmp_path), RESERVE).prepare()
    disk.room = RESERVE + RESERVE // 2
    room = DirectoryRoom(disk, str(tmp_path), RESERVE)
    room.prepare()
    assert (disk.reserved(), room.is_short) == (RESERVE, True)
    disk.room = RESERVE
    room.prepare()
    assert (disk.reserved(), room.is_short) == (RESERVE // 2, True)


def test_no_reserve_means_that_every_append_is_tried(tmp_path: Path) -> None:
    disk = SizedDisk(tmp_path, 0)
    room = DirectoryRoom(disk, str(tmp_path), 0)
    room.prepare()
    room.ran_out()
    assert (room.has_room(), room.is_short, disk.reserved()) == (True, False, 0)


def no_room() -> LogStorageError:
    try:
        raise LogStorageError("orders-0 could not be written.") from OSError(errno.ENOSPC, "full")
    except LogStorageError as error:
        return error


def test_a_full_disk_is_told_of_once_and_left_alone_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SizedDisk(tmp_path, 10 * RESERVE)
    room = DirectoryRoom(disk, str(tmp_path), RESERVE)
    room.prepare()
    failures = WriteFailures({str(tmp_path): room})
    log: PartitionLog = open_log(new_disk(), f"{tmp_path}/orders-0")
    disk.room = RESERVE
    for _ in range(3):
        failures.failed(log, no_room())
        with pytest.raises(LogStorageError, match="its disk is full"):
            failures.check_room(log)
    disk.room = 10 * RESERVE
    failures.check_room(log)
    failures.succeeded(log)
    assert failures.directories == set()
    said = [record.getMessage() for record in caplog.records]
    assert [text.count("takes no appends") for text in said if "appends" in text] == [1, 0]
