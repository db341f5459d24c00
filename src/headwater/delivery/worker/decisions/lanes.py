"""Records that wait to be handled: those of one key and partition one after the other.

A lane holds the records of a key, in order; a record without a key has one of its own. Whoever
handles records takes the first of a lane, and the lane rests until that is finished. A record that
is to be tried again is put back in front, and its lane rests until then: what comes behind it waits
too, and all other lanes go on.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from headwater.base.ids import TopicPartition
from headwater.client.consumer.workers.lanes import Task

#: The partition, the key, and the offset where there is no key.
Lane: TypeAlias = tuple[TopicPartition, bytes | None, int]


class Turn(NamedTuple):
    """A record to be handled now, for the n-th time."""

    lane: Lane
    task: Task
    attempt: int


class KeyLanes:
    """Not for two threads at a time."""

    def __init__(self) -> None:
        #: All lanes with something waiting or being handled.
        self._lanes: dict[Lane, deque[Task]] = {}
        self._ready: deque[Lane] = deque()
        #: Lanes that rest, by when they are ready again.
        self._resting: list[tuple[float, int, Lane]] = []
        #: How often the first record of a lane was tried.
        self._attempts: dict[Lane, int] = {}
        self._running: Counter[TopicPartition] = Counter()
        #: The furthest record of a partition that was ever taken.
        self._furthest: dict[TopicPartition, int] = {}
        self._numbers = itertools.count()

    @property
    def waiting_count(self) -> int:
        return sum(map(len, self._lanes.values()))

    @property
    def running_count(self) -> int:
        """How many records are being handled."""
        return self._running.total()

    def unfinished_count(self, partitions: Collection[TopicPartition] | None = None) -> int:
        """How many are being handled, or will be without anybody waiting for a time to come."""
        resting = {lane for _, _, lane in self._resting}
        waiting_count = sum(
            len(waiting)
            for lane, waiting in self._lanes.items()
            if lane not in resting and (partitions is None or lane[0] in partitions)
        )
        running = self._running if partitions is None else partitions
        return waiting_count + sum(self._running[partition] for partition in running)

    @property
    def next_s(self) -> float | None:
        """When the next lane is ready that rests; None if none does."""
        return self._resting[0][0] if self._resting else None

    def add(self, task: Task) -> None:
        key = task.record.key
        lane = (task.topic_partition, key, task.record.offset if key is None else -1)
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque((task,))
            self._ready.append(lane)
        else:
            waiting.append(task)

    def take(self, now_s: float) -> Turn | None:
        """The next record of the lane that has been ready for longest."""
        while self._resting and self._resting[0][0] <= now_s:
            self._ready.append(heapq.heappop(self._resting)[2])
        if not self._ready:
            return None
        lane = self._ready.popleft()
        task = self._lanes[lane].popleft()
        partition = task.topic_partition
        self._running[partition] += 1
        self._furthest[partition] = max(self._furthest.get(partition, -1), task.record.offset)
        return Turn(lane, task, self._attempts.get(lane, 0) + 1)

    def finish(self, turn: Turn) -> None:
        """The record is done, or sent on; its lane goes on."""
        self._running[turn.task.topic_partition] -= 1
        self._attempts.pop(turn.lane, None)
        if self._lanes[turn.lane]:
            self._ready.append(turn.lane)
        else:
            del self._lanes[turn.lane]

    def put_back(self, turn: Turn, due_s: float) -> None:
        """The record is tried again at that time, and what is behind it waits."""
        self._running[turn.task.topic_partition] -= 1
        self._lanes[turn.lane].appendleft(turn.task)
        self._attempts[turn.lane] = turn.attempt
        heapq.heappush(self._resting, (due_s, next(self._numbers), turn.lane))

    def drop(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Forget what waits of these partitions, or of all; what is being handled goes on."""
        for lane in self._of(partitions):
            self._lanes[lane].clear()
            self._furthest.pop(lane[0], None)
        self._tidy()

    def drop_behind(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """The same, but what lies in front of a record that was taken stays.

        A partition is committed up to the first record that is not done: without those in front of
        it, one that is done would be handled again by whoever has the partition next. What rests
        is not waited for.
        """
        resting = {lane for _, _, lane in self._resting}
        for lane in self._of(partitions):
            furthest = -1 if lane in resting else self._furthest.get(lane[0], -1)
            waiting = self._lanes[lane]
            while waiting and waiting[-1].record.offset > furthest:
                waiting.pop()
        self._tidy()

    def _of(self, partitions: Collection[TopicPartition] | None) -> list[Lane]:
        return [lane for lane in self._lanes if partitions is None or lane[0] in partitions]

    def _tidy(self) -> None:
        """Forget the lanes that nobody has anything to do with any more."""
        for lane in {*self._ready, *(lane for _, _, lane in self._resting)}:
            if not self._lanes[lane]:
                del self._lanes[lane]
                self._attempts.pop(lane, None)
        self._ready = deque(lane for lane in self._ready if lane in self._lanes)
        self._resting = [entry for entry in self._resting if entry[2] in self._lanes]
        heapq.heapify(self._resting)
