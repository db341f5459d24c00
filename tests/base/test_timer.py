import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.base.timer import TimingWheelTimer
from headwater.base.timing_wheel import TimerTaskEntry


def _nothing() -> None:
    return None


@dataclass
class _HeapModel:
    """What the timer promises, said with a heap of tasks."""

    now_ms: int
    tick_ms: int
    heap: list[tuple[int, int]] = field(default_factory=list)

    def add(self, delay_ms: int, number: int) -> None:
        expiration_ms = self.now_ms + max(delay_ms, 0)
        while expiration_ms % self.tick_ms:
            expiration_ms += 1
        heapq.heappush(self.heap, (expiration_ms, number))

    def cancel(self, number: int) -> bool:
        before = len(self.heap)
        self.heap = [task for task in self.heap if task[1] != number]
        heapq.heapify(self.heap)
        return len(self.heap) < before

    def advance_to(self, now_ms: int) -> list[int]:
        self.now_ms = now_ms
        ran = []
        while self.heap and self.heap[0][0] <= now_ms:
            ran.append(heapq.heappop(self.heap)[1])
        return ran


_DELAYS_MS = st.one_of(
    st.integers(-3, 45), st.integers(0, 1_000), st.integers(0, 200_000), st.integers(0, 2**62)
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _DELAYS_MS),
        st.tuples(st.just("cancel"), st.integers(0, 40)),
        st.tuples(st.just("advance"), _DELAYS_MS),
        st.tuples(st.just("advance to next"), st.just(0)),
    ),
    max_size=60,
)


@given(
    steps=_STEPS,
    start_ms=st.integers(0, 10**13),
    tick_ms=st.sampled_from([1, 1, 1, 3, 10]),
    wheel_size=st.sampled_from([20, 20, 2, 7]),
)
def test_the_timer_does_what_a_heap_of_tasks_does(
    steps: list[tuple[str, int]], start_ms: int, tick_ms: int, wheel_size: int
) -> None:
    timer = TimingWheelTimer(start_ms, tick_ms, wheel_size)
    model = _HeapModel(start_ms, tick_ms)
    ran: list[int] = []
    entries: list[TimerTaskEntry] = []

    def recorder(number: int) -> Callable[[], None]:
        return lambda: ran.append(number)

    for step, amount in steps:
        if step == "add":
            model.add(amount, len(entries))
            entries.append(timer.add(amount, recorder(len(entries))))
        elif step == "cancel":
            if amount < len(entries):
                assert timer.cancel(entries[amount]) == model.cancel(amount)
                assert not entries[amount].pending
        else:
            next_ms = timer.next_expiration_ms()
            to_next_ms = model.now_ms if next_ms is None else max(next_ms, model.now_ms)
            now_ms = to_next_ms if step == "advance to next" else model.now_ms + max(amount, 0)
            ran.clear()
            assert timer.advance_to(now_ms) == len(ran)
            assert ran == model.advance_to(now_ms)
        assert len(timer) == len(model.heap)
        next_ms = timer.next_expiration_ms()
        assert (next_ms is None) == (not model.heap)
        assert next_ms is None or next_ms <= model.heap[0][0]


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_calling_when_told_runs_every_task_exactly_on_time(delays_ms: list[int]) -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[int] = []
    for delay_ms in delays_ms:
        timer.add(delay_ms, lambda: ran.append(timer.now_ms))
    while (next_ms := timer.next_expiration_ms()) is not None:
        timer.advance_to(next_ms)
    assert ran == sorted(delays_ms)
    # Each task moves at most once per level, and 15 levels of 20 slots span 2**62 ms.
    assert timer.buckets_visited <= 15 * len(delays_ms)


def test_a_huge_delay_waits_on_a_high_level_and_runs_when_its_time_comes() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[str] = []
    task = timer.add(2**62, lambda: ran.append("huge"))
    place = timer.place(task)
    assert place is not None
    assert place.level == 15
    assert place.from_ms <= 2**62 < place.until_ms
    assert timer.advance_to(2**62 - 1) == 0
    assert timer.advance_to(2**62) == 1
    assert ran == ["huge"]


def test_no_empty_tick_is_visited() -> None:
    timer = TimingWheelTimer(start_ms=0)
    timer.add(5, _nothing)
    timer.add(5, _nothing)
    timer.add(19, _nothing)
    assert timer.advance_to(4) == 0
    assert timer.buckets_visited == 0
    assert timer.advance_to(18) == 2
    assert timer.buckets_visited == 1
    assert timer.advance_to(1_000_000_000) == 1
    assert timer.buckets_visited == 2


def test_a_million_idle_milliseconds_cost_as_many_visits_as_there_are_levels() -> None:
    timer = TimingWheelTimer(start_ms=0)
    timer.add(1_000_000, _nothing)
    for now_ms in range(0, 1_000_001, 100):
        timer.advance_to(now_ms)
    assert len(timer) == 0
    assert timer.buckets_visited <= 5


def test_cancelled_tasks_leave_nothing_to_wake_up_for() -> None:
    timer = TimingWheelTimer(start_ms=0)
    tasks = [timer.add(delay_ms, _nothing) for delay_ms in (3, 350, 450)]
    assert [task.cancel() for task in tasks] == [True, True, True]
    assert [task.cancel() for task in tasks] == [False, False, False]
    assert (len(timer), timer.next_expiration_ms()) == (0, None)
    again = timer.add(350, _nothing)
    assert timer.next_expiration_ms() == 340
    assert timer.advance_to(350) == 1
    assert not again.pending


def test_a_callback_may_cancel_one_that_is_due_with_it() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[str] = []
    victims: list[TimerTaskEntry] = []
    timer.add(5, lambda: ran.append(f"cancelled {victims[0].cancel()}"))
    victims.append(timer.add(5, lambda: ran.append("victim")))
    timer.add(6, lambda: ran.append("last"))
    assert timer.advance_to(10) == 2
    assert ran == ["cancelled True", "last"]


def test_a_callback_that_adds_itself_without_delay_runs_once_a_call() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[int] = []

    def again() -> None:
        ran.append(timer.now_ms)
        timer.add(0, again)

    timer.add(0, again)
    assert timer.next_expiration_ms() == 0
    assert timer.advance_to(0) == 1
    assert timer.next_expiration_ms() == 0
    assert timer.advance_to(7) == 1
    assert timer.advance_to(7) == 1
    assert ran == [0, 7, 7]


def test_a_delay_counts_from_the_last_advance_even_inside_a_callback() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[int] = []
    timer.add(5, lambda: timer.add(10, lambda: ran.append(timer.now_ms)))
    timer.advance_to(100)
    assert timer.advance_to(109) == 0
    assert timer.advance_to(110) == 1
    assert ran == [110]


def test_absolute_times_that_have_passed_run_at_the_next_call() -> None:
    timer = TimingWheelTimer(start_ms=1_000)
    ran: list[str] = []
    timer.add_at(10, lambda: ran.append("past"))
    timer.add_at(1_005, lambda: ran.append("future"))
    assert timer.advance_to(1_000) == 1
    assert timer.advance_to(1_005) == 1
    assert ran == ["past", "future"]


def test_a_coarse_tick_makes_tasks_late_but_never_early() -> None:
    timer = TimingWheelTimer(start_ms=0, tick_ms=10)
    timer.add(15, _nothing)
    assert timer.advance_to(19) == 0
    assert timer.advance_to(20) == 1


def test_a_failing_callback_does_not_lose_the_others() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[str] = []

    def fail() -> None:
        raise ValueError("broken")

    timer.add(1, fail)
    timer.add(2, lambda: ran.append("between"))
    timer.add(3, fail)
    timer.add(4, lambda: ran.append("after"))
    with pytest.raises(ExceptionGroup, match="2 of 4 timer tasks failed") as caught:
        timer.advance_to(4)
    assert [type(each) for each in caught.value.exceptions] == [ValueError, ValueError]
    assert ran == ["between", "after"]
    assert len(timer) == 0
    assert timer.advance_to(5) == 0


def test_an_interrupt_stops_at_once_and_keeps_what_is_due() -> None:
    timer = TimingWheelTimer(start_ms=0)
    ran: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    timer.add(1, interrupt)
    timer.add(2, lambda: ran.append("kept"))
    with pytest.raises(KeyboardInterrupt):
        timer.advance_to(2)
    assert timer.next_expiration_ms() == 2
    assert timer.advance_to(2) == 1
    assert ran == ["kept"]


def test_misuse_is_refused() -> None:
    timer = TimingWheelTimer(start_ms=10)
    with pytest.raises(InvariantError, match="time went back"):
        timer.advance_to(9)
    timer.add(0, lambda: timer.advance_to(20))
    with pytest.raises(ExceptionGroup) as caught:
        timer.advance_to(10)
    assert caught.value.subgroup(InvariantError) is not None
    with pytest.raises(InvariantError):
        TimingWheelTimer(start_ms=0, tick_ms=0)
    with pytest.raises(InvariantError):
        TimingWheelTimer(start_ms=0, wheel_size=1)
