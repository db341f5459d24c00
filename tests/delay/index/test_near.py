"""What is due soon, in memory."""

from __future__ import annotations

from random import Random

from headwater.delay.index.entries import pack, unpack
from headwater.delay.index.near import NearEntries
from headwater.wire.delayed.copies import OrderKey


def _keys(dues: range, armed: int) -> list[OrderKey]:
    return [OrderKey(due, armed + due, armed + due) for due in dues]


def _run(keys: list[OrderKey]) -> bytes:
    return b"".join(map(pack, keys))


def _all(near: NearEntries) -> list[OrderKey]:
    return [unpack(entry) for entry in near.between(0, 1 << 60, 1_000_000)]


def test_runs_and_late_entries_come_in_one_order() -> None:
    near = NearEntries()
    sorted_before, late = _keys(range(100), 0), _keys(range(0, 130, 3), 1_000)
    near.add_run(_run(sorted_before[:60]))
    near.add_run(_run(sorted_before[60:]))
    for key in Random(5).sample(late, len(late)):
        near.add(key.due_ms, pack(key))
    expected = sorted(sorted_before + late)
    assert _all(near) == expected
    assert near.count == len(expected)
    for limit in (1, 7, 61, 99):
        assert near.between(0, 90, limit) == [pack(key) for key in expected[:limit]]
    assert near.count_between(10, 70) == sum(10 <= key.due_ms < 70 for key in expected)


def test_late_entries_of_one_time_are_sorted_though_they_come_in_another_order() -> None:
    near = NearEntries()
    keys = [OrderKey(5, 9, offset) for offset in (3, 1, 2, 0)]
    for key in keys:
        near.add(5, pack(key))
    assert _all(near) == sorted(keys)


def test_what_is_removed_does_not_come_up() -> None:
    near = NearEntries()
    run, late = _keys(range(50), 0), _keys(range(50), 1_000)
    near.add_run(_run(run))
    for key in late:
        near.add(key.due_ms, pack(key))
    removed = run[::3] + late[::2] + run[:5]
    for key in removed[: -len(run[:5])]:
        assert near.remove(key.due_ms, pack(key))
    assert not near.remove(run[0].due_ms, pack(run[0]))
    assert not near.remove(7, pack(OrderKey(7, 7, 8)))
    for key in run[:5]:
        near.remove(key.due_ms, pack(key))
    left = sorted(set(run + late) - set(removed))
    assert _all(near) == left
    assert near.count == len(left)
    assert near.first() == pack(left[0])
    assert near.find(run[3].due_ms, run[3].offset) is None
    assert near.find(run[7].due_ms, run[7].offset) == pack(run[7])
    assert near.find(late[7].due_ms, late[7].offset) == pack(late[7])
    assert [key for key in run + late if near.holds(key.due_ms, pack(key))] == [
        key for key in run + late if key in left
    ]
    assert not near.holds(left[0].due_ms, pack(left[0]._replace(armed_offset=1 << 40)))


def test_what_is_passed_is_dropped() -> None:
    near = NearEntries()
    run, late = _keys(range(50), 0), [OrderKey(due, 99, n) for due in (10, 20) for n in range(9)]
    near.add_run(_run(run[:25]))
    near.add_run(_run(run[25:]))
    for key in late:
        near.add(key.due_ms, pack(key))
    waiting = sorted(run + late)
    for place in (0, 3, 15, 16, 30, len(waiting) - 1):
        passed = waiting[place]
        near.remove(waiting[place].due_ms, pack(waiting[place]))
        near.pass_to(passed.due_ms, pack(passed))
        assert _all(near) == waiting[place + 1 :]
        assert near.count == len(waiting) - place - 1
    assert near.first() is None
    assert near.memory_bytes == 0
