"""What only the real disk does: system calls that stop short, and other programs' locks."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.storage.disk.files import Buffer, DiskFiles


def test_modified_time_of_the_real_disk(tmp_path: Path) -> None:
    files, path = DiskFiles(), str(tmp_path / "f")
    files.open(path, create=True).close()
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    assert files.modified_ms(path) == 1_700_000_000_123


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_pwrite, calls = os.pwrite, []

    def short_pwrite(descriptor: int, data: Buffer, position: int) -> int:
        calls.append(len(data))
        return whole_pwrite(descriptor, data[:3], position)

    file = DiskFiles().open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr(os, "pwrite", short_pwrite)
    file.write_at(2, b"0123456789")
    assert file.read_at(0, 100) == b"\0\x000123456789"
    assert calls == [10, 7, 4, 1]


def test_a_disk_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DiskFiles().open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(OSError) as caught:
        file.write_at(0, b"abc")
    assert caught.value.errno == errno.EIO


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_pread = os.pread
    file = DiskFiles().open(str(tmp_path / "f"), create=True)
    file.write_at(0, b"0123456789")
    monkeypatch.setattr(os, "pread", lambda fd, size, at: whole_pread(fd, min(size, 4), at))
    assert file.read_at(1, 9) == b"123456789"
    assert file.read_at(1, 50) == b"123456789"


def test_errors_name_the_file(tmp_path: Path) -> None:
    file = DiskFiles().open(str(tmp_path / "f"), create=True)
    with pytest.raises(OSError) as caught:
        file.truncate(-1)
    assert caught.value.filename == str(tmp_path / "f")


@pytest.mark.skipif(sys.platform != "linux", reason="record locks meet ours on Linux only")
def test_the_lock_of_another_program_is_respected(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    # The kind of lock that a JVM takes, held by another process.
    program = (
        "import fcntl, sys\n"
        f"file = open({path!r}, 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            DiskFiles().lock(path)
        other.communicate()
    lock = DiskFiles().lock(path)
    with open(path, "w") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.release()
