"""Which offsets have an id of their sender's."""

from __future__ import annotations

from itertools import count

import pytest

from headwater.delay.index import append_files
from headwater.delay.index.append_files import AppendFiles
from headwater.delay.index.delay_ids import DelayIds
from headwater.sim.disk.faulty_disk import FaultyDisk

_DIRECTORY = "/data/orders-0"


def _ids() -> tuple[DelayIds, AppendFiles]:
    pool = AppendFiles(FaultyDisk(directories=[_DIRECTORY]), _DIRECTORY, count())
    return DelayIds(pool), pool


def test_there_is_no_file_without_an_id() -> None:
    ids, pool = _ids()
    assert ids.candidates(b"order") == []
    pool.write_all()
    assert pool.files.list_dir(_DIRECTORY) == []
    assert ids.rows() == ()


def test_the_newest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_files, "BUFFER_BYTES_MAX", 1_000)
    monkeypatch.setattr(append_files, "CHUNK_BYTES", 48)
    ids, _ = _ids()
    names = [b"order-%d" % (number % 40) for number in range(400)]
    for offset, name in enumerate(names):
        ids.add(name, offset)
    for number in range(40):
        assert ids.candidates(b"order-%d" % number) == list(range(360 + number, -1, -40))
    assert ids.candidates(b"order-7", limit=2) == [367, 327]
    assert ids.candidates(b"order") == []


def test_what_is_forgotten_leaves_the_files() -> None:
    ids, pool = _ids()
    for offset in range(4_000):
        ids.add(b"order-%d" % offset, offset)
    pool.write_all()
    before = ids.size_bytes
    old_names = set(pool.files.list_dir(_DIRECTORY))
    for _ in range(16):
        ids.forget_below(3_000)
    assert ids.size_bytes < before / 2
    assert ids.candidates(b"order-2999") == []
    assert all(ids.candidates(b"order-%d" % offset) == [offset] for offset in range(3_000, 4_000))
    # The checkpoint before may still need the old files, as they were.
    assert old_names <= set(pool.files.list_dir(_DIRECTORY))
    pool.remove_retired(())
    pool.write_all()
    assert set(pool.files.list_dir(_DIRECTORY)) == {row.name for row in ids.rows()}


def test_little_that_is_old_is_left_alone() -> None:
    ids, pool = _ids()
    for offset in range(4_000):
        ids.add(b"order", offset)
    pool.write_all()
    for _ in range(16):
        ids.forget_below(1_000)
    assert ids.size_bytes == 4_000 * 16
    assert ids.candidates(b"order", limit=4_000) == list(range(3_999, 999, -1))
