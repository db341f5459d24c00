"""Locks of files, between two that have the same file open."""

import errno
from pathlib import Path

import pytest

from headwater.storage.disk.file_lock import is_locked_elsewhere, lock_descriptor


def test_one_at_a_time_has_the_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with path.open("w") as ours, path.open("w") as others:
        assert not is_locked_elsewhere(others.fileno())
        lock_descriptor(ours.fileno())
        assert is_locked_elsewhere(others.fileno())
        with pytest.raises(OSError) as refused:
            lock_descriptor(others.fileno())
        assert refused.value.errno in (errno.EAGAIN, errno.EACCES)
    with path.open("w") as free:
        assert not is_locked_elsewhere(free.fileno())
        lock_descriptor(free.fileno())
