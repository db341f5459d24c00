import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.base.linux_numbers import RWF_NOWAIT
from headwater.net import page_cache
from headwater.net.page_cache import is_cached, library_probe, read_in

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
    def probe(_: int, position: int) -> None:
        if position == cold:
            raise BlockingIOError(errno.EAGAIN, "not in memory")

    monkeypatch.setattr(page_cache, "_probe", probe)
    assert not is_cached(descriptor, 0, SIZE)


def test_where_the_kernel_does_not_tell_everything_counts_as_cached(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe(_: int, __: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(page_cache, "_probe", probe)
    assert is_cached(descriptor, 0, SIZE)


@pytest.mark.skipif(RWF_NOWAIT is None, reason="this system does not tell what is in memory")
def test_a_python_that_cannot_ask_asks_the_c_library(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RWF_NOWAIT is not None
    probe = library_probe(RWF_NOWAIT)
    if probe is None:
        pytest.skip("neither does the C library here")
    probe(descriptor, SIZE - 1)
    with pytest.raises(OSError) as closed:
        probe(-1, 0)
    assert closed.value.errno == errno.EBADF
    _drop(descriptor)
    answers = [is_cached(descriptor, 0, SIZE)]
    monkeypatch.setattr(page_cache, "_probe", probe)
    # Whatever this file system does, both ways to ask hear the same.
    assert [is_cached(descriptor, 0, SIZE)] == answers
