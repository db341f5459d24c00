"""Records that wait for a worker, in lanes: those of one lane are handled one after the other.

What a lane is decides which order is kept: a partition, a key, or every record by itself. A worker
takes a lane that is ready, and gives it back after one record, behind the others, so that a long
lane holds nobody up. Nothing in here knows threads: whoever uses it from several holds a lock.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from enum import Enum
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.tracker import OffsetTracker


class Ordering(Enum):
    #: A partition's records one after the other: as much at once as there are partitions.
    PARTITION = "partition"
    #: The records of a key one after the other; those without a key in any order.
    KEY = "key"
    #: Any order.
    NONE = "none"


class Task(NamedTuple):
    """A record to be handled, and where to note that it is done."""

    record: ConsumerRecord
    topic_partition: TopicPartition
    tracker: OffsetTracker
    #: Set when nobody waits for the record any more.
    ending: threading.Event


class Turn(NamedTuple):
    """What a worker does next; the lane waits until it is finished."""

    lane: Hashable
    task: Task


class WorkLanes:
    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        #: All lanes with something waiting or running.
        self._lanes: dict[Hashable, deque[Task]] = {}
        self._ready: deque[Hashable] = deque()
        self._running: Counter[TopicPartition] = Counter()

    @property
    def is_ready(self) -> bool:
        """Whether a worker would find something."""
        return bool(self._ready)

    def running_count(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """How many records are being handled, of these partitions or of all."""
        if partitions is None:
            return self._running.total()
        return sum(self._running[topic_partition] for topic_partition in partitions)

    def add(self, task: Task) -> None:
        lane = self._lane_of(task)
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque((task,))
            self._ready.append(lane)
        else:
            waiting.append(task)

    def take(self) -> Turn:
        """The next record of the lane that has been ready for longest."""
        lane = self._ready.popleft()
        task = self._lanes[lane].popleft()
        self._running[task.topic_partition] += 1
        return Turn(lane, task)

    def finish(self, turn: Turn) -> None:
        """The record is handled, or given up; its lane goes on."""
        self._running[turn.task.topic_partition] -= 1
        if self._lanes[turn.lane]:
            self._ready.append(turn.lane)
        else:
            del self._lanes[turn.lane]

    def drop(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Forget what waits of these partitions, or of all; what runs goes on running."""
        gone = None if partitions is None else set(partitions)
        ready = set(self._ready)
        for lane, waiting in list(self._lanes.items()):
            kept = [
                task for task in waiting if gone is not None and task.topic_partition not in gone
            ]
            waiting.clear()
            waiting.extend(kept)
            if not waiting and lane in ready:
                del self._lanes[lane]
        self._ready = deque(lane for lane in self._ready if lane in self._lanes)

    def _lane_of(self, task: Task) -> Hashable:
        record = task.record
        if self._ordering is Ordering.PARTITION:
            return task.topic_partition
        if self._ordering is Ordering.KEY and record.key is not None:
            return task.topic_partition, record.key
        return task.topic_partition, record.offset, task.tracker
