import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.net import page_cache
from headwater.net.page_cache import is_cached, read_in

SIZE = 3 * 1024 * 1024


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    yield opened
    os.close(opened)


def _drop(descriptor: int) -> None:
    os.fsync(descriptor)  # What is not on disk cannot be dropped.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def test_what_was_written_just_now_is_cached(descriptor: int) -> None:
    assert is_cached(descriptor, 17, SIZE - 17)


def test_a_file_is_cached_again_after_it_was_read_in(descriptor: int) -> None:
    _drop(descriptor)
    if is_cached(descriptor, 0, SIZE):
        pytest.skip("this file system does not tell, or drops nothing from memory")
    read_in(descriptor, 100, SIZE - 100)
    assert is_cached(descriptor, 100, SIZE - 100)


def test_reading_in_ends_where_the_file_does(descriptor: int) -> None:
    read_in(descriptor, SIZE - 10, 1000)
    read_in(descriptor, SIZE + 10, 1000)
    assert is_cached(descriptor, SIZE + 10, 10)


@pytest.mark.parametrize("cold", [0, 3 * page_cache.PROBE_DISTANCE, SIZE - 1])
def test_one_cold_spot_is_enough(
    descriptor: int, cold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preadv(_: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        if position == cold:
            raise BlockingIOError(errno.EAGAIN, "not in memory")
        return 1

    monkeypatch.setattr(os, "preadv", preadv)
    assert not is_cached(descriptor, 0, SIZE)


def test_where_the_kernel_does_not_tell_everything_counts_as_cached(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preadv(_: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", preadv)
    assert is_cached(descriptor, 0, SIZE)
