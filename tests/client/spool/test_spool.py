import errno
import os
import threading
from pathlib import Path

import pytest

from headwater.client.errors import ClientClosedError
from headwater.client.spool.errors import (
    SpoolDamagedError,
    SpoolError,
    SpoolFullError,
    SpoolLockedError,
    SpoolRecordTooLargeError,
    SpoolVersionError,
)
from headwater.client.spool.files.frames import FILE_HEADER_SIZE
from headwater.client.spool.files.local_files import LocalFile, LocalFiles
from headwater.client.spool.files.reader import SpoolReader
from headwater.client.spool.spool import FsyncPolicy, Spool
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from tests.support.logs.spools import append_all, contents, record
from tests.support.waiting import eventually

_POLICIES = tuple(FsyncPolicy)


def _values(count: int, first: int = 0) -> list[bytes]:
    return [b"value %d" % number for number in range(first, first + count)]


@pytest.mark.parametrize("policy", _POLICIES)
def test_what_is_appended_is_there_after_closing(tmp_path: Path, policy: FsyncPolicy) -> None:
    directory = str(tmp_path / "deep" / "spool")
    spool = Spool(directory, fsync=policy)
    assert append_all(spool, _values(3)) == [0, 1, 2]
    spool.close()
    spool = Spool(directory, fsync=policy)
    assert append_all(spool, _values(2, 3)) == [3, 4]
    assert contents(spool) == list(enumerate(_values(5)))
    spool.advance(4)
    spool.close()
    spool = Spool(directory, fsync=policy)
    assert contents(spool) == [(4, b"value 4")]
    spool.close()


def test_a_second_producer_is_told_that_the_directory_is_taken(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    with pytest.raises(SpoolLockedError, match="in use by another producer"):
        Spool(str(tmp_path))
    spool.close()
    Spool(str(tmp_path)).close()


def test_files_are_deleted_once_all_in_them_is_delivered(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), segment_bytes=200)
    append_all(spool, _values(30))
    before = sorted(tmp_path.glob("*.spool"))
    assert len(before) > 5
    size_bytes = sum(path.stat().st_size for path in before)
    assert spool.size_bytes == size_bytes
    spool.advance(29)
    assert contents(spool) == [(29, b"value 29")]
    after = sorted(tmp_path.glob("*.spool"))
    assert len(after) == 1
    assert spool.size_bytes == after[0].stat().st_size
    spool.close()


def test_a_full_spool_refuses_until_there_is_room(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), max_bytes=4096, segment_bytes=1024)
    count = 0
    with pytest.raises(SpoolFullError, match="is full"):
        while True:
            spool.append(record(bytes(100)))
            count += 1
    assert count > 20
    assert spool.size_bytes <= 4096
    # Delivery of the first file gives its room back, though later ones are still needed.
    spool.advance(count // 2)
    spool.append(record(bytes(100)))
    spool.close()


def test_an_append_waits_for_room(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), max_bytes=4096)
    spool.append(record(bytes(3000)))
    numbers: list[int] = []
    waiter = threading.Thread(
        target=lambda: numbers.append(spool.append(record(bytes(3500)), timeout_s=30))
    )
    waiter.start()
    eventually(lambda: spool._room_waiter_count == 1)
    # The record does not fit beside the one before, though that is delivered: its file goes too.
    spool.advance(1)
    waiter.join(30)
    assert numbers == [1]
    assert [number for number, _ in contents(spool)] == [1]
    spool.close()


def test_a_record_that_can_never_fit_is_refused_at_once(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), max_bytes=4096)
    with pytest.raises(SpoolRecordTooLargeError):
        spool.append(record(bytes(5000)), timeout_s=30)
    spool.close()


def test_a_closed_spool_takes_nothing(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    spool.close()
    spool.close()
    with pytest.raises(ClientClosedError):
        spool.append(record(b""))


class _SlowFile(LocalFile):
    """Its sync waits until somebody lets it go on."""

    def __init__(self, descriptor: int, files: "_SlowFiles") -> None:
        super().__init__(descriptor)
        self._files = files

    def sync(self) -> None:
        self._files.sync_count += 1
        assert self._files.may_sync.wait(30)


class _SlowFiles(LocalFiles):
    def __init__(self) -> None:
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.sync_count = 0

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        return _SlowFile(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644), self)


def test_callers_that_wait_together_share_one_fsync(tmp_path: Path) -> None:
    files = _SlowFiles()
    spool = Spool(str(tmp_path), files=files)
    files.sync_count = 0
    files.may_sync.clear()
    threads = [threading.Thread(target=spool.append, args=(record(b"x"),)) for _ in range(20)]
    for thread in threads:
        thread.start()
    eventually(lambda: spool.next_number == 20)
    # Nothing is handed out for shipping before it is durable.
    assert contents(spool) == []
    files.may_sync.set()
    for thread in threads:
        thread.join(30)
    # One that began when the first had appended, and one for all the others.
    assert files.sync_count <= 2
    assert len(contents(spool)) == 20
    spool.close()


def test_an_interval_makes_durable_without_another_append(tmp_path: Path) -> None:
    files = _SlowFiles()
    spool = Spool(str(tmp_path), files=files, fsync=FsyncPolicy.INTERVAL, fsync_interval_ms=10)
    files.sync_count = 0
    append_all(spool, _values(50))
    eventually(lambda: spool._synced_number == 50)
    assert 1 <= files.sync_count < 50
    spool.close()


def test_a_full_disk_refuses_a_record_and_loses_none() -> None:
    disk = FaultyDisk(directories=["/spool"])
    spool = Spool("/spool", files=disk)
    append_all(spool, _values(5))
    disk.capacity_bytes = disk.used_bytes + 20
    with pytest.raises(SpoolError, match="cannot be written"):
        spool.append(record(bytes(100)))
    disk.capacity_bytes = None
    append_all(spool, _values(2, 5))
    assert contents(spool) == list(enumerate(_values(7)))
    spool.close()
    assert contents(Spool("/spool", files=disk)) == list(enumerate(_values(7)))


def test_no_file_can_be_begun_for_now() -> None:
    disk = FaultyDisk(directories=["/spool"])
    spool = Spool("/spool", files=disk, segment_bytes=200)
    append_all(spool, _values(3))
    disk.faults.append(Fault(operations={"create"}, error=errno.ENOSPC, hit_count_max=1))
    refused = 0
    for value in _values(10, 3):
        try:
            spool.append(record(value))
        except SpoolError:
            refused += 1
    assert refused == 1
    assert len(contents(spool)) == 12


def test_after_an_fsync_that_failed_nothing_is_taken_any_more() -> None:
    disk = FaultyDisk(directories=["/spool"])
    spool = Spool("/spool", files=disk)
    spool.append(record(b"safe"))
    disk.faults.append(Fault(operations={"sync"}, hit_count_max=1))
    for _ in range(2):
        with pytest.raises(SpoolError, match="takes no more records"):
            spool.append(record(b"lost"))
    assert contents(spool) == [(0, b"safe")]
    spool.close()


def test_a_damaged_file_is_set_aside_and_the_rest_is_shipped(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), segment_bytes=200)
    append_all(spool, _values(30))
    spool.close()
    second = sorted(tmp_path.glob("*.spool"))[1]
    data = bytearray(second.read_bytes())
    data[-1] ^= 1
    second.write_bytes(data)
    spool = Spool(str(tmp_path), segment_bytes=200)
    reader = SpoolReader(spool, spool.position)
    found: list[int] = []
    with pytest.raises(SpoolDamagedError, match="cannot be read any more"):
        while (numbered := reader.read()) is not None:
            found.append(numbered.number)
    lost = range(found[-1] + 1, reader.next_number)
    assert len(lost) == 1
    while (numbered := reader.read()) is not None:
        found.append(numbered.number)
    assert sorted([*found, *lost]) == list(range(30))
    assert second.exists()
    spool.advance(30)
    assert second.with_suffix(".spool.damaged").read_bytes() == data
    spool.close()


def test_damage_in_the_file_in_use_does_not_stop_new_records(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    append_all(spool, _values(3))
    active = next(tmp_path.glob("*.spool"))
    with active.open("r+b") as file:
        file.seek(FILE_HEADER_SIZE)
        file.write(b"\xff\xff\xff\xff")
    reader = SpoolReader(spool, 0)
    with pytest.raises(SpoolDamagedError, match="records 0 to 2"):
        reader.read()
    assert spool.append(record(b"new")) == 3
    numbered = reader.read()
    assert numbered is not None
    assert (numbered.number, numbered.record.value) == (3, b"new")
    spool.close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    from crc32c import crc32c

    spool = Spool(str(tmp_path))
    spool.append(record(b"x"))
    spool.close()
    path = next(tmp_path.glob("*.spool"))
    data = bytearray(path.read_bytes())
    data[4:6] = b"\x00\x02"
    data[8:12] = crc32c(bytes(data[:6])).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(SpoolVersionError, match="version 2"):
        Spool(str(tmp_path))


def test_a_record_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    values = [b"small", os.urandom(1 << 20), b"small", os.urandom(1 << 19)]
    append_all(spool, values)
    assert [value for _, value in contents(spool)] == values
    spool.close()
    spool = Spool(str(tmp_path))
    assert [value for _, value in contents(spool)] == values
    spool.close()
