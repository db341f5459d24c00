import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.read_only_files import ReadOnlyFiles

FILES = ReadOnlyFiles()


def test_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    file = FILES.open(str(path), create=True)
    assert (file.size(), file.read_at(3, 10)) == (7, b"tent")
    assert FILES.list_dir(str(tmp_path)) == ["file"]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: FILES.open(f"{path}/new", create=True),
        lambda path: FILES.open(f"{path}/file").write_at(0, b"x"),
        lambda path: FILES.open(f"{path}/file").truncate(1),
        lambda path: FILES.make_dir(f"{path}/directory"),
        lambda path: FILES.rename(f"{path}/file", f"{path}/other"),
        lambda path: FILES.remove(f"{path}/file"),
        lambda path: FILES.remove_tree(path),
        lambda path: FILES.sync_dir(path),
        lambda path: FILES.lock(f"{path}/.lock"),
    ],
)
def test_it_changes_nothing(tmp_path: Path, change: Callable[[str], object]) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(OSError):
        change(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"content"


def test_it_sees_locks_without_taking_them(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    assert not FILES.is_locked(path)
    lock = DiskFiles().lock(path)
    assert FILES.is_locked(path)
    lock.release()
    assert not FILES.is_locked(path)
    DiskFiles().lock(path).release()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere locks are taken in another way")
def test_it_sees_the_locks_of_a_jvm(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    script = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        assert FILES.is_locked(str(path))
        other.communicate()
    assert not FILES.is_locked(str(path))
