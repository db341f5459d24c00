"""The index of what waits: what it writes when, what it keeps in memory, what it trusts."""

from __future__ import annotations

from random import Random

import pytest

from headwater.base.checks import InvariantError
from headwater.delay.index import homes as homes_module
from headwater.delay.index import index as index_module
from headwater.delay.index.checkpoint import NAME, decode_checkpoint, encode_checkpoint
from headwater.delay.index.index import DelayIndex
from headwater.delay.index.index_directory import is_index_file
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.segments.segment_files import parse_segment_file_name
from headwater.wire.delayed.copies import OrderKey

_DIRECTORY = "/data/orders-0"
_NOW_MS = 1_700_000_100_000
_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000


def _disk() -> FaultyDisk:
    return FaultyDisk(directories=[_DIRECTORY])


def _open(disk: FaultyDisk) -> DelayIndex:
    return DelayIndex.open(disk, _DIRECTORY, _NOW_MS)[0]


def _key(offset: int, delay_ms: int) -> OrderKey:
    return OrderKey(_NOW_MS + delay_ms, offset, offset)


def _read_count(disk: FaultyDisk) -> int:
    return sum(operation == "read" for operation, _ in disk.operations)


def test_only_what_is_near_is_in_memory() -> None:
    index = _open(_disk())
    rng = Random(3)
    keys = [_key(offset, rng.randrange(7 * 24 * _HOUR_MS)) for offset in range(20_000)]
    for key in keys:
        index.add(key)
    assert index.first() is None
    index.checkpoint({}, len(keys))
    far_bytes = index.memory_bytes
    index.advance(_NOW_MS)
    near = [key for key in sorted(keys) if key.due_ms < index.horizon_ms]
    assert index.due(index.horizon_ms, 1_000) == near
    assert _NOW_MS + _MINUTE_MS <= index.horizon_ms <= _NOW_MS + 2 * _MINUTE_MS
    assert index.memory_bytes - far_bytes == 24 * len(near)
    assert index.count == len(keys)
    assert index.size_bytes == 24 * len(keys)


def test_a_large_hour_is_split_and_comes_in_order() -> None:
    disk = _disk()
    index = _open(disk)
    rng = Random(4)
    # More than a megabyte in one hour, most of it in one minute and in one second of it.
    delays = [2 * _HOUR_MS + rng.randrange(_HOUR_MS) for _ in range(20_000)]
    delays += [2 * _HOUR_MS + 30 * _MINUTE_MS + rng.randrange(1_000) for _ in range(60_000)]
    keys = [_key(offset, delay) for offset, delay in enumerate(delays)]
    for key in keys:
        index.add(key)
    removed = keys[::50]
    for offset, key in enumerate(removed, len(keys)):
        index.remove(key, offset)
    waiting = sorted(set(keys) - set(removed))
    now_ms = _NOW_MS
    taken: list[OrderKey] = []
    while len(taken) < len(waiting):
        now_ms += 10 * _MINUTE_MS
        index.advance(now_ms)
        while due := index.due(now_ms, 10_000):
            taken += due
            index.pass_to(due[-1])
            index.advance(now_ms)
    assert taken == waiting
    assert index.count == 0
    index.advance(now_ms + _HOUR_MS)
    index.checkpoint({}, len(keys) + len(removed))
    assert [name for name in disk.list_dir(_DIRECTORY) if name != NAME] == []


def test_overdue_messages_do_not_all_come_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "NEAR_COUNT_MAX", 100)
    index = _open(_disk())
    keys = [_key(offset, offset * 1_000) for offset in range(20_000)]
    for key in keys:
        index.add(key)
    now_ms = _NOW_MS + 10 * _HOUR_MS
    taken: list[OrderKey] = []
    while len(taken) < len(keys):
        index.advance(now_ms)
        # An hour at a time.
        assert len(index.due(now_ms, 20_000)) <= 3_600 + 100
        due = index.due(now_ms, 500)
        taken += due
        index.pass_to(due[-1])
    assert taken == keys


def test_many_old_times_have_one_file() -> None:
    disk = _disk()
    index = _open(disk)
    for offset in range(1_000):
        index.add(OrderKey(offset * _HOUR_MS, offset, offset))
    index.checkpoint({}, 1_000)
    assert len(disk.list_dir(_DIRECTORY)) == 2
    index.advance(_NOW_MS)
    assert index.due(_NOW_MS, 3) == [OrderKey(n * _HOUR_MS, n, n) for n in range(3)]


def test_adding_writes_seldom() -> None:
    disk = _disk()
    index = _open(disk)
    for offset in range(40_000):
        index.add(_key(offset, offset * 10_000))
    writes = [path for operation, path in disk.operations if operation == "write"]
    assert len(writes) == 0
    for offset in range(40_000, 80_000):
        index.add(_key(offset, (offset - 40_000) * 10_000))
    writes = [path for operation, path in disk.operations if operation == "write"]
    assert 0 < len(writes) <= 200


def test_its_files_are_no_segments() -> None:
    disk = _disk()
    index = _open(disk)
    index.add(_key(0, 0))
    index.add(_key(1, _HOUR_MS))
    index.ids.add(b"order", _key(1, 0))
    index.checkpoint({}, 2)
    names = disk.list_dir(_DIRECTORY)
    assert len(names) == 4
    for name in names:
        assert is_index_file(name)
        assert parse_segment_file_name(name) is None
    assert not is_index_file("00000000000000000000.log")


def test_files_go_after_the_checkpoint_that_is_without_them() -> None:
    disk = _disk()
    index = _open(disk)
    index.add(_key(0, 0))
    index.add(_key(1, 5 * _HOUR_MS))
    index.checkpoint({}, 2)
    before = set(disk.list_dir(_DIRECTORY))
    index.advance(_NOW_MS + 2 * _HOUR_MS)
    index.pass_to(_key(0, 0))
    plan = index.plan_checkpoint({}, 3)
    assert set(disk.list_dir(_DIRECTORY)) == before
    plan.run()
    assert set(disk.list_dir(_DIRECTORY)) == before
    index.complete_checkpoint(plan)
    assert len(before - set(disk.list_dir(_DIRECTORY))) == 1


def test_opening_reads_no_file_but_the_checkpoint() -> None:
    disk = _disk()
    index = _open(disk)
    for offset in range(500):
        index.add(_key(offset, offset * _HOUR_MS))
    index.checkpoint({"seen": 17}, 500)
    disk = disk.after_process_end()
    index, checkpoint = DelayIndex.open(disk, _DIRECTORY, _NOW_MS)
    assert checkpoint is not None
    assert (checkpoint.offset, checkpoint.state) == (500, {"seen": 17})
    assert [path for operation, path in disk.operations if operation == "read"] == [
        f"{_DIRECTORY}/{NAME}"
    ]
    assert index.count == 500


def test_thousands_are_asked_for_with_one_read_of_their_hour() -> None:
    disk = _disk()
    index = _open(disk)
    keys = [_key(offset, 2 * _HOUR_MS + offset % 3) for offset in range(5_000)]
    for key in keys:
        index.add(key)
    index.remove(keys[7], 5_000)
    index.checkpoint({}, 5_001)
    disk = disk.after_process_end()
    index = _open(disk)
    disk.operations.clear()
    assert [key for key in keys if not index.holds(key)] == [keys[7]]
    assert _read_count(disk) == 1
    # What happens from then on is noted.
    index.remove(keys[8], 5_002)
    index.add(OrderKey(keys[8].due_ms, 5_003, keys[8].offset))
    assert [key for key in keys if not index.holds(key)] == [keys[7], keys[8]]
    assert _read_count(disk) == 1


def test_not_all_marks_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes_module, "_MARKED_MAX", 5)
    index = _open(_disk())
    keys = [_key(offset, (2 + offset // 10) * _HOUR_MS) for offset in range(50)]
    for key in keys:
        index.add(key)
    for key in keys[::2]:
        index.remove(key, 50)
    assert [key for key in keys if index.holds(key)] == keys[1::2]
    assert sum(len(home.marks.offsets) for home in index._homes if home.marks) == 5


def test_what_comes_next_is_looked_up_once_however_much_waits() -> None:
    disk = _disk()
    index = _open(disk)
    keys = [_key(offset, 2 * _HOUR_MS + offset) for offset in range(5_000)]
    for key in reversed(keys[1:]):
        index.add(key._replace(armed_offset=5_000))
    index.checkpoint({}, 5_001)
    assert index.first_of_all() == keys[1]._replace(armed_offset=5_000)
    disk.operations.clear()
    sooner = OrderKey(keys[0].due_ms, 5_001, 5_001)
    index.add(sooner)
    assert [index.first_of_all() for _ in range(5)] == [sooner] * 5
    assert _read_count(disk) == 0
    index.remove(sooner, 5_002)
    assert index.first_of_all() == keys[1]._replace(armed_offset=5_000)


@pytest.mark.parametrize("damage", ["checkpoint", "version", "missing file", "short file"])
def test_what_cannot_be_trusted_is_removed(damage: str) -> None:
    disk = _disk()
    index = _open(disk)
    index.add(_key(0, _HOUR_MS))
    index.checkpoint({}, 1)
    home = next(name for name in disk.list_dir(_DIRECTORY) if name != NAME)
    checkpoint, path = disk.open(f"{_DIRECTORY}/{NAME}"), f"{_DIRECTORY}/{home}"
    if damage == "checkpoint":
        checkpoint.write_at(20, b"?")
    elif damage == "version":
        found = decode_checkpoint(checkpoint.read_at(0, checkpoint.size()))
        assert found is not None
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr("headwater.delay.index.checkpoint.VERSION", 1)
            checkpoint.write_at(0, encode_checkpoint(found))
    elif damage == "missing file":
        disk.remove(path)
    else:
        disk.open(path).truncate(23)
    index, found = DelayIndex.open(disk, _DIRECTORY, _NOW_MS)
    assert found is None
    assert disk.list_dir(_DIRECTORY) == []
    assert index.count == 0


def test_events_behind_its_offset_make_no_checkpoint() -> None:
    index = _open(_disk())
    index.add(_key(7, 0))
    with pytest.raises(InvariantError):
        index.plan_checkpoint({}, 7)
    index.checkpoint({}, 8)


def test_a_write_that_failed_is_made_again() -> None:
    disk = _disk()
    index = _open(disk)
    index.add(_key(0, _HOUR_MS))
    disk.faults.append(Fault(("write",), hit_count_max=1))
    with pytest.raises(OSError):
        index.checkpoint({}, 1)
    index.add(_key(1, _HOUR_MS))
    index.checkpoint({}, 2)
    index = _open(disk.after_process_end())
    assert index.between(0, 1 << 60, 10) == [_key(0, _HOUR_MS), _key(1, _HOUR_MS)]


def test_an_event_is_told_once_though_its_buffer_cannot_be_written() -> None:
    disk = _disk()
    index = _open(disk)
    disk.faults.append(Fault(("write",), torn=True))
    failed = 0
    for offset in range(50_000):
        try:
            index.add(_key(offset, offset * 10_000))
        except OSError:
            failed += 1
    assert failed > 0
    disk.faults.clear()
    index.checkpoint({}, 50_000)
    index = _open(disk.after_process_end())
    assert index.count == 50_000
    expected = [_key(offset, offset * 10_000) for offset in range(50_000)]
    assert index.between(0, 1 << 60, 50_000) == expected


def test_a_checkpoint_that_is_called_off_is_never_written() -> None:
    disk = _disk()
    index = _open(disk)
    index.add(_key(0, _HOUR_MS))
    plan = index.plan_checkpoint({}, 1)
    assert index.reset_to_checkpoint() is None
    plan.run()
    assert disk.list_dir(_DIRECTORY) == []


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("goes_well", [False, True])
def test_what_happens_while_a_range_comes_near_is_not_lost(
    is_large: bool, goes_well: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.delay.index.advance.SPLIT_BYTES", 100 if is_large else 10_000)
    disk = _disk()
    index = _open(disk)
    keys = [_key(offset, 100 * offset) for offset in range(50)]
    for key in keys[:40]:
        index.add(key)
    plan = index.plan_advance(_NOW_MS)
    assert plan is not None
    assert plan.is_split == is_large
    for key in keys[40:]:
        index.add(key)
    for offset, key in enumerate(keys[::7], 50):
        index.remove(key, offset)
    waiting = [key for key in keys if key not in keys[::7]]
    assert index.count == len(waiting)
    index.checkpoint({}, 60)
    plan.run()
    if goes_well:
        index.complete_advance(plan)
    else:
        index.abandon_advance(plan)
    assert index.count == len(waiting)
    assert index.between(0, 1 << 60, 100) == waiting
    index.advance(_NOW_MS)
    assert index.due(_NOW_MS + 10_000, 100) == waiting
    assert index.count == len(waiting)
    # The checkpoint is one of the time in between.
    index = _open(disk.after_process_end())
    assert index.count == len(waiting)
    assert index.between(0, 1 << 60, 100) == waiting


def test_listing_stops_behind_much_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "LISTED_BYTES_MAX", 100)
    index = _open(_disk())
    keys = [_key(offset, offset * _HOUR_MS // 4) for offset in range(100)]
    for key in keys:
        index.add(key)
    found = index.between(0, 1 << 60, 100)
    assert 4 < len(found) < 20
    assert found == keys[: len(found)]
    assert index.between(found[-1].due_ms + 1, 1 << 60, 3) == keys[len(found) : len(found) + 3]
