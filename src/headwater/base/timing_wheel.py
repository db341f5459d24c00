"""The hierarchical timing wheel: many pending timeouts, O(1) to add and to cancel one.

The problem
    A broker parks every produce and fetch that must wait, and each of them needs a timeout. Nearly
    all of these are cancelled long before they fire. A heap of tasks pays O(log n) to add one and,
    without extra bookkeeping, O(n) to cancel one; with hundreds of thousands pending, that is the
    wrong price for something that seldom happens.

The wheel
    A wheel is a ring of `wheel_size` buckets, each standing for `tick_ms` of time; together they
    span `interval_ms = tick_ms * wheel_size`. A pointer, `current_ms`, always a multiple of
    `tick_ms`, says how far time has come. A task that expires at E belongs into bucket number
    `E // tick_ms`, and the ring keeps that bucket in slot `E // tick_ms % wheel_size`. Slots
    behind the pointer are free again and stand for the time after the far end, so the wheel always
    covers from `current_ms` to `current_ms + interval_ms`. A bucket is a circular doubly linked
    list with a sentinel: a task is put in and taken out by changing two neighbours, and neither
    end is a special case.

    With `tick_ms=1` and `wheel_size=20`, at time 0, a task of 2 ms goes to slot 2. Two ms later
    the pointer stands on slot 2 and the task fires. A task of 8 ms added now goes to slot 10. One
    of 19 ms expires at 21 and goes to slot 1, which the pointer has left behind: the slot is used
    again.

Overflow wheels
    A task of 350 ms does not fit into 20 ms, and a longer ring would have no sensible length. So a
    wheel that is too short passes the task on to the next level, which is made when it is first
    needed and whose tick is the whole interval of the level below: 20 ms a slot and 400 ms in all
    on level 2, 400 ms a slot and 8 s on level 3, and so on, like the hands of a clock. The 350 ms
    task lies in slot 17 of level 2, [340, 360). One of 450 ms is too long for level 2 and lies in
    slot 1 of level 3, [400, 800), together with every other task that expires in that time. Level
    15 is enough for any 64-bit number of milliseconds.

Demotion
    A bucket of a higher level is opened when its time *begins*. What is not due yet is then added
    again, and because it has come nearer it finds its place on a lower level. The task of 450 ms
    is found at 400 with 50 ms left and moves to level 2, into the slot that begins 40 ms later and
    covers [40, 60) from there; it is found again at 440 with 10 ms left and moves to level 1,
    [10, 11) from there; and at 450 it fires. Each task moves at most once per level.

The queue of buckets
    Walking the ring tick by tick would visit mostly empty slots. Instead a small heap holds the
    buckets in use, ordered by the time at which they begin, and time jumps from one to the next.
    So the heap is still there, but it orders at most `wheel_size` buckets a level rather than the
    tasks, and a task that joins a bucket in use does not touch it. Each structure does what it is
    good at: the wheel adds and cancels, the heap says when to look next.

This module holds the parts; `headwater.base.timer` puts them together. Nothing here reads a clock.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple, Self

from headwater.base.checks import check


class PendingCount:
    """How many tasks are in the lists that share this count."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class TimerTaskEntry:
    """One task in a timer: what to call, when, and its links in the list that holds it."""

    __slots__ = ("_list", "_next", "_previous", "callback", "expiration_ms", "sequence")

    def __init__(self, expiration_ms: int, sequence: int, callback: Callable[[], object]) -> None:
        self.expiration_ms = expiration_ms
        self.sequence = sequence
        self.callback = callback
        self._list: TimerTaskList | None = None
        self._previous = self
        self._next = self

    @property
    def pending(self) -> bool:
        """Whether the task is still to run."""
        return self._list is not None

    @property
    def bucket(self) -> "TimerTaskList | None":
        """The list that holds the task, if it is still to run."""
        return self._list

    def cancel(self) -> bool:
        """Make sure that the task will not run; false when it ran or was cancelled before."""
        if self._list is None:
            return False
        self._list.remove(self)
        return True


class TimerTaskList:
    """A circular doubly linked list of tasks: a bucket of a wheel, or the tasks that are due.

    `begins_ms` is set while a bucket waits in the queue of buckets, and only then.
    """

    __slots__ = ("_pending", "_sentinel", "begins_ms", "level", "slot")

    def __init__(self, pending: PendingCount, level: int = 0, slot: int = 0) -> None:
        self._pending = pending
        self._sentinel = TimerTaskEntry(-1, -1, lambda: None)
        self.level = level
        self.slot = slot
        self.begins_ms: int | None = None

    def first(self) -> TimerTaskEntry | None:
        entry = self._sentinel._next
        return None if entry is self._sentinel else entry

    def append(self, entry: TimerTaskEntry) -> None:
        check(entry._list is None, "a task can only be in one list")
        last = self._sentinel._previous
        entry._previous = last
        entry._next = self._sentinel
        entry._list = self
        last._next = entry
        self._sentinel._previous = entry
        self._pending.value += 1

    def remove(self, entry: TimerTaskEntry) -> None:
        check(entry._list is self, "a task can only be removed from the list that holds it")
        entry._previous._next = entry._next
        entry._next._previous = entry._previous
        entry._previous = entry._next = entry
        entry._list = None
        self._pending.value -= 1

    def drain(self) -> Iterator[TimerTaskEntry]:
        """Remove all tasks, first to last."""
        while (entry := self.first()) is not None:
            self.remove(entry)
            yield entry


class BucketQueue:
    """The buckets that hold tasks, the one whose time begins first in front.

    A bucket that lost its tasks to cancellation stays until it comes to the front, where it is
    dropped: there are so few buckets that this costs less than looking for it.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, TimerTaskList]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, bucket: TimerTaskList, begins_ms: int) -> None:
        bucket.begins_ms = begins_ms
        heappush(self._heap, (begins_ms, bucket.level, bucket.slot, bucket))

    def next_ms(self) -> int | None:
        """When the time of the first bucket with tasks begins."""
        while self._heap:
            begins_ms, _, _, bucket = self._heap[0]
            if bucket.first() is not None:
                return begins_ms
            self._pop()
        return None

    def pop_begun(self, now_ms: int) -> TimerTaskList | None:
        """Take the first bucket whose time has begun."""
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        return self._pop()

    def _pop(self) -> TimerTaskList:
        bucket = heappop(self._heap)[3]
        bucket.begins_ms = None
        return bucket


class Place(NamedTuple):
    """Where a waiting task lies: level and slot, and the time [from_ms, until_ms) of its bucket."""

    level: int
    slot: int
    from_ms: int
    until_ms: int


class TimingWheel:
    """One level, which makes the next one when it needs it. The caller holds only level 1."""

    def __init__(
        self,
        tick_ms: int,
        wheel_size: int,
        start_ms: int,
        pending: PendingCount,
        queue: BucketQueue,
        level: int = 1,
    ) -> None:
        self.tick_ms = tick_ms
        self.interval_ms = tick_ms * wheel_size
        self.current_ms = start_ms - start_ms % tick_ms
        self.level = level
        self.overflow: Self | None = None
        self._wheel_size = wheel_size
        self._pending = pending
        self._queue = queue
        self._buckets = [TimerTaskList(pending, level, slot) for slot in range(wheel_size)]

    def add(self, entry: TimerTaskEntry) -> bool:
        """Put a task into its bucket, here or further up; false when it is due already."""
        wheel = self
        if entry.expiration_ms < wheel.current_ms + wheel.tick_ms:
            return False
        while entry.expiration_ms >= wheel.current_ms + wheel.interval_ms:
            wheel = wheel._overflow_wheel()
        wheel._put(entry)
        return True

    def advance(self, now_ms: int) -> None:
        """Move the pointer of every level; all buckets that began by `now_ms` must be empty."""
        wheel: TimingWheel | None = self
        # Where a level stands still, so do all above it, because their ticks are longer.
        while wheel is not None and now_ms >= wheel.current_ms + wheel.tick_ms:
            wheel.current_ms = now_ms - now_ms % wheel.tick_ms
            wheel = wheel.overflow

    def place(self, entry: TimerTaskEntry) -> Place | None:
        """Where a task lies; None when it waits in no bucket."""
        bucket = entry.bucket
        if bucket is None or bucket.begins_ms is None:
            return None
        tick_ms = self.tick_ms * self._wheel_size ** (bucket.level - 1)
        return Place(bucket.level, bucket.slot, bucket.begins_ms, bucket.begins_ms + tick_ms)

    def _put(self, entry: TimerTaskEntry) -> None:
        number = entry.expiration_ms // self.tick_ms
        begins_ms = number * self.tick_ms
        bucket = self._buckets[number % self._wheel_size]
        if bucket.begins_ms is None:
            self._queue.push(bucket, begins_ms)
        check(
            bucket.begins_ms == begins_ms,
            "slot %d of level %d stands for %s and %d at once",
            bucket.slot,
            self.level,
            bucket.begins_ms,
            begins_ms,
        )
        bucket.append(entry)

    def _overflow_wheel(self) -> Self:
        if self.overflow is None:
            self.overflow = type(self)(
                self.interval_ms,
                self._wheel_size,
                self.current_ms,
                self._pending,
                self._queue,
                self.level + 1,
            )
        return self.overflow
