"""The worked examples of the module's essay, and what the parts promise."""

import pytest

from headwater.base.checks import InvariantError
from headwater.base.timer import TimingWheelTimer
from headwater.base.timing_wheel import PendingCount, Place, TimerTaskEntry, TimerTaskList


def _nothing() -> None:
    return None


def test_slots_behind_the_pointer_are_used_again() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[str] = []
    two = timer.add(2, lambda: ran.append("2 ms"))
    assert timer.place(two) == Place(1, 2, 2, 3)
    assert timer.advance_to(2) == 1
    assert ran == ["2 ms"]

    eight = timer.add(8, lambda: ran.append("8 ms"))
    nineteen = timer.add(19, lambda: ran.append("19 ms"))
    assert timer.place(eight) == Place(1, 10, 10, 11)
    assert timer.place(nineteen) == Place(1, 1, 21, 22)
    assert timer.advance_to(10) == 1
    assert timer.advance_to(20) == 0
    assert timer.advance_to(21) == 1
    assert ran == ["2 ms", "8 ms", "19 ms"]


def test_350_ms_is_on_the_second_wheel() -> None:
    timer = TimingWheelTimer(start_ms=0)
    task = timer.add(350, _nothing)
    assert timer.place(task) == Place(2, 17, 340, 360)


@pytest.mark.parametrize("delay_ms", [400, 446, 455, 473, 799])
def test_tasks_from_400_to_799_ms_share_a_slot_of_the_third_wheel(delay_ms: int) -> None:
    timer = TimingWheelTimer(start_ms=0)
    assert timer.place(timer.add(delay_ms, _nothing)) == Place(3, 1, 400, 800)


def test_450_ms_is_demoted_twice_and_then_runs() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[int] = []
    task = timer.add(450, lambda: ran.append(timer.now_ms))
    assert timer.next_expiration_ms() == 400

    assert timer.advance_to(400) == 0
    assert timer.place(task) == Place(2, 440 // 20 % 20, 400 + 40, 400 + 60)
    assert timer.next_expiration_ms() == 440

    assert timer.advance_to(440) == 0
    assert timer.place(task) == Place(1, 450 % 20, 440 + 10, 440 + 11)
    assert timer.next_expiration_ms() == 450

    assert timer.advance_to(449) == 0
    assert timer.advance_to(450) == 1
    assert ran == [450]
    assert timer.place(task) is None
    assert timer.next_expiration_ms() is None


def test_a_start_between_ticks_is_trimmed_on_every_level() -> None:
    timer = TimingWheelTimer(start_ms=1_003)
    task = timer.add(350, _nothing)
    assert timer.place(task) == Place(2, 1_353 // 20 % 20, 1_340, 1_360)
    assert timer.advance_to(1_352) == 0
    assert timer.advance_to(1_353) == 1


def test_the_list_keeps_order_and_takes_from_anywhere() -> None:
    pending = PendingCount()
    tasks = TimerTaskList(pending)
    entries = [TimerTaskEntry(number, number, _nothing) for number in range(5)]
    for entry in entries:
        tasks.append(entry)
    for number in (0, 4, 2):
        assert entries[number].cancel()
    assert pending.value == 2
    assert list(tasks.drain()) == [entries[1], entries[3]]
    assert (tasks.first(), pending.value) == (None, 0)


def test_a_task_is_in_one_list_only() -> None:
    pending = PendingCount()
    one, other = TimerTaskList(pending), TimerTaskList(pending)
    entry = TimerTaskEntry(1, 1, _nothing)
    one.append(entry)
    with pytest.raises(InvariantError):
        other.append(entry)
    with pytest.raises(InvariantError):
        other.remove(entry)
