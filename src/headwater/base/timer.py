"""A timer on hierarchical timing wheels, driven by whoever owns it.

The owner calls `advance_to(now_ms)` when `next_expiration_ms()` has come, and before it adds a task
whose delay should count from now. There is no thread and no clock in here; `now_ms` is monotonic
time. See `headwater.base.timing_wheel` for how it works and what it costs.

The contract: a task runs once, never before its time, unless it was cancelled; tasks run in order
of their expiration, and those that expire together in the order in which they were added. A task
added by a callback runs in a later call of `advance_to`, even with no delay, so that a call always
ends.
"""

from collections.abc import Callable

from headwater.base.checks import check
from headwater.base.timing_wheel import (
    BucketQueue,
    PendingCount,
    Place,
    TimerTaskEntry,
    TimerTaskList,
    TimingWheel,
)


class TimingWheelTimer:
    """Runs callbacks after their delays.

    Expirations are rounded up to whole ticks, so a coarse tick makes tasks late, never early.
    """

    def __init__(self, start_ms: int, tick_ms: int = 1, wheel_size: int = 20) -> None:
        check(tick_ms >= 1, "a tick must last at least 1 ms, not %d", tick_ms)
        check(wheel_size >= 2, "a wheel must have at least 2 slots, not %d", wheel_size)
        self.now_ms = start_ms
        self.buckets_visited = 0
        self._tick_ms = tick_ms
        self._pending = PendingCount()
        self._queue = BucketQueue()
        self._wheel = TimingWheel(tick_ms, wheel_size, start_ms, self._pending, self._queue)
        self._due = TimerTaskList(self._pending)
        self._next_sequence = 0
        self._advancing = False

    def __len__(self) -> int:
        """How many tasks are still to run."""
        return self._pending.value

    def add(self, delay_ms: int, callback: Callable[[], object]) -> TimerTaskEntry:
        """Call `callback` once `delay_ms` have passed since the last `advance_to`."""
        return self.add_at(self.now_ms + delay_ms, callback)

    def add_at(self, expiration_ms: int, callback: Callable[[], object]) -> TimerTaskEntry:
        """Call `callback` at `expiration_ms`, or in the next `advance_to` if that has passed."""
        # Floor division of the negative rounds up.
        whole_ticks_ms = -(-max(expiration_ms, self.now_ms) // self._tick_ms) * self._tick_ms
        entry = TimerTaskEntry(whole_ticks_ms, self._next_sequence, callback)
        self._next_sequence += 1
        if not self._wheel.add(entry):
            self._due.append(entry)
        return entry

    def cancel(self, entry: TimerTaskEntry) -> bool:
        """Make sure that a task will not run; false when it ran or was cancelled before."""
        return entry.cancel()

    def next_expiration_ms(self) -> int | None:
        """When `advance_to` next has something to do; None when nothing is pending.

        That may be before any task expires, when tasks have to move to a lower level.
        """
        due = self._due.first()
        return due.expiration_ms if due is not None else self._queue.next_ms()

    def advance_to(self, now_ms: int) -> int:
        """Run what has expired by `now_ms` and return how many tasks that was.

        A callback may add and cancel tasks. If callbacks fail, the others still run, and then the
        failures are raised together as an `ExceptionGroup`.
        """
        check(not self._advancing, "a callback cannot advance the timer that runs it")
        check(now_ms >= self.now_ms, "time went back from %d to %d ms", self.now_ms, now_ms)
        self._advancing = True
        try:
            self.now_ms = now_ms
            self._collect_due()
            return self._run_due()
        finally:
            self._advancing = False

    def place(self, entry: TimerTaskEntry) -> Place | None:
        """Where in the wheels a task lies; None when it is due, done or cancelled."""
        return self._wheel.place(entry)

    def _collect_due(self) -> None:
        # Every bucket that has begun is emptied before the pointers move, because moving them
        # gives its slot to a later time.
        released: list[TimerTaskEntry] = []
        while (bucket := self._queue.pop_begun(self.now_ms)) is not None:
            self.buckets_visited += 1
            released.extend(bucket.drain())
        self._wheel.advance(self.now_ms)
        released.sort(key=_running_order)
        for entry in released:
            if entry.expiration_ms <= self.now_ms:
                self._due.append(entry)
            else:
                check(self._wheel.add(entry), "a task that is not due found no bucket")

    def _run_due(self) -> int:
        count = 0
        failures: list[Exception] = []
        first_sequence_of_callbacks = self._next_sequence
        while (entry := self._due.first()) is not None:
            if entry.sequence >= first_sequence_of_callbacks:
                break
            self._due.remove(entry)
            count += 1
            try:
                entry.callback()
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {count} timer tasks failed", failures)
        return count


def _running_order(entry: TimerTaskEntry) -> tuple[int, int]:
    return entry.expiration_ms, entry.sequence
