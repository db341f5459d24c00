"""Files that are opened although there is no descriptor left."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from headwater.storage.disk.disk_files import DiskFiles
from headwater.storage.disk.spare_descriptors import SpareDescriptors

SPARE_COUNT = 3


@contextmanager
def without_descriptors() -> Iterator[None]:
    """For a moment this process may open no more than it has open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        highest = max(int(each) for each in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        try:
            while True:
                stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError:
            yield


def test_spare_descriptors_serve_when_there_are_no_others(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    Path(path).write_bytes(b"records")
    bare, files = DiskFiles(), DiskFiles(SpareDescriptors(SPARE_COUNT))
    with without_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            bare.open(path)
        for _ in range(10):
            # What is open for a moment only is had again and again.
            files.sync_dir(str(tmp_path))
            assert files.open(path).read_at(0, 7) == b"records"
        kept = [files.open(path) for _ in range(SPARE_COUNT)]
        with pytest.raises(OSError, match="Too many open files"):
            files.open(path)
        kept.pop().close()
        assert files.open(path).read_at(0, 7) == b"records"
    for each in kept:
        each.close()


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    files = DiskFiles(SpareDescriptors(SPARE_COUNT))
    with pytest.raises(FileNotFoundError):
        files.open(str(tmp_path / "absent"))


def test_they_are_closed_with_their_owner() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spare = SpareDescriptors(SPARE_COUNT)
    assert len(os.listdir("/proc/self/fd")) == before + SPARE_COUNT
    del spare
    assert len(os.listdir("/proc/self/fd")) == before
