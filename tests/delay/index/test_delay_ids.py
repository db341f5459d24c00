"""Which offsets have an id of their sender's."""

from __future__ import annotations

from itertools import count

import pytest

from headwater.delay.index import append_files
from headwater.delay.index.append_files import AppendFiles
from headwater.delay.index.delay_ids import DelayIds
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.wire.delayed.copies import OrderKey

_DIRECTORY = "/data/orders-0"


def _ids() -> tuple[DelayIds, AppendFiles]:
    pool = AppendFiles(FaultyDisk(directories=[_DIRECTORY]), _DIRECTORY, count())
    return DelayIds(pool), pool


def _key(offset: int) -> OrderKey:
    return OrderKey(7, offset, offset)


def _offsets(ids: DelayIds, sender_id: bytes) -> list[int]:
    return [key.offset for key in ids.candidates(sender_id)]


def test_there_is_no_file_without_an_id() -> None:
    ids, pool = _ids()
    assert _offsets(ids, b"order") == []
    pool.write_all()
    assert pool.files.list_dir(_DIRECTORY) == []
    assert ids.rows() == ()


def test_the_newest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_files, "BUFFER_BYTES_MAX", 1_000)
    monkeypatch.setattr(append_files, "CHUNK_BYTES", 96)
    ids, _ = _ids()
    names = [b"order-%d" % (number % 40) for number in range(400)]
    for offset, name in enumerate(names):
        ids.add(name, _key(offset))
    for number in range(40):
        assert _offsets(ids, b"order-%d" % number) == list(range(360 + number, -1, -40))
    assert next(ids.candidates(b"order-7")) == _key(367)
    assert _offsets(ids, b"order") == []


def test_what_is_forgotten_leaves_the_files() -> None:
    ids, pool = _ids()
    for offset in range(4_000):
        ids.add(b"order-%d" % offset, _key(offset))
    pool.write_all()
    before = ids.size_bytes
    old_names = set(pool.files.list_dir(_DIRECTORY))
    for _ in range(16):
        ids.forget_below(3_000)
    assert ids.size_bytes < before / 2
    assert _offsets(ids, b"order-2999") == []
    assert all(_offsets(ids, b"order-%d" % offset) == [offset] for offset in range(3_000, 4_000))
    # The checkpoint before may still need the old files, as they were.
    assert old_names <= set(pool.files.list_dir(_DIRECTORY))
    pool.remove_retired(())
    pool.write_all()
    assert set(pool.files.list_dir(_DIRECTORY)) == {row.name for row in ids.rows()}


def test_little_that_is_old_is_left_alone() -> None:
    ids, pool = _ids()
    for offset in range(4_000):
        ids.add(b"order", _key(offset))
    pool.write_all()
    for _ in range(16):
        ids.forget_below(1_000)
    assert ids.size_bytes == 4_000 * 32
    assert _offsets(ids, b"order") == list(range(3_999, 999, -1))


def test_what_a_commit_armed_late_is_not_forgotten_before_its_time() -> None:
    """It stands behind what was written later, and armed before."""
    ids, pool = _ids()
    for offset in range(100, 200):
        ids.add(b"order", _key(offset))
    late = [OrderKey(7, 200, offset) for offset in range(50, 100)]
    for key in late:
        ids.add(b"order", key)
    pool.write_all()
    for _ in range(16):
        ids.forget_below(60)
    assert sorted(_offsets(ids, b"order")) == list(range(60, 200))
    for _ in range(16):
        ids.forget_below(190)
    assert sorted(_offsets(ids, b"order")) == list(range(190, 200))
    assert ids.size_bytes == 60 * 32
