"""What was promised of dead letters that are sent back: once each, and orders are obeyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import origin_of
from headwater.delivery.redrive.tasks.task import Progress, Wanted
from headwater.delivery.redrive.tasks.task_topic import TaskBook
from headwater.sim.handling.redrive_program import FROM_HEADER, TASK_HEADER
from headwater.sim.histories.history import PropertyViolated

#: Longer than a runner stands still, or cannot be reached, and yet goes on.
OBEDIENCE_MS: Final = 15_000


class Message(NamedTuple):
    """What a letter and the record that it becomes have in common."""

    origin: str
    key: bytes | None
    value: bytes | None

    @classmethod
    def of(cls, record: ConsumerRecord) -> Message:
        return cls(str(origin_of(record)), record.key, record.value)


def check_sent_once(
    source: str, letters: Iterable[ConsumerRecord], arrived: Iterable[ConsumerRecord]
) -> None:
    """Each letter of a topic is in the target once: all that there are were to be sent."""
    there, sent = Counter(map(Message.of, letters)), Counter(map(Message.of, arrived))
    for message, count in sent.items():
        if not there[message]:
            raise PropertyViolated(f"a letter is sent back as it was: {message} was not there")
        if count > there[message]:
            raise PropertyViolated(
                f"a letter is sent back once: {message} of {source} is there {there[message]} "
                f"times, and was sent {count} times"
            )
    for message, count in there.items():
        if sent[message] < count:
            raise PropertyViolated(
                f"no letter is lost: {message} of {source} is there {count} times, and was sent "
                f"{sent[message]} times"
            )


class TaskLog:
    """The topic of tasks from its first record on, as they see it who read what is committed."""

    def __init__(self, records: Sequence[ConsumerRecord]) -> None:
        self.book = TaskBook()
        #: By task, all that was ever told of it, and where that stands.
        self.progress: dict[str, list[tuple[int, Progress]]] = {}
        #: By task, the last order.
        self._orders: dict[str, ConsumerRecord] = {}
        for record in records:
            self.book.learn(record)
            task_id, _, kind = (record.key or b"").decode().partition("/")
            if kind == "progress":
                found = (record.offset, self.book.progress[task_id])
                self.progress.setdefault(task_id, []).append(found)
            elif not kind:
                self._orders[task_id] = record

    def check_progress(self, told: Mapping[str, Mapping[int, int]]) -> None:
        """It never goes back, and what a runner was told to be committed is."""
        for task_id, found in self.progress.items():
            positions: dict[int, int] = {}
            read_count = sent_count = 0
            for offset, progress in found:
                for partition, before in positions.items():
                    if progress.positions.get(partition, 0) < before:
                        raise PropertyViolated(
                            f"progress does not go back: task {task_id} was at {before} of "
                            f"partition {partition}, and is at {progress.positions} in {offset}"
                        )
                counts = progress.counts
                if counts.read < read_count or counts.sent < sent_count:
                    raise PropertyViolated(
                        f"progress does not go back: task {task_id} had read {read_count} and sent "
                        f"{sent_count}, and in {offset} it says {counts}"
                    )
                positions = progress.positions
                read_count, sent_count = counts.read, counts.sent
        for task_id, furthest in told.items():
            known = self.book.progress[task_id].positions if task_id in self.progress else {}
            for partition, position in furthest.items():
                if known.get(partition, 0) < position:
                    raise PropertyViolated(
                        f"progress that is committed stays: task {task_id} was at {position} of "
                        f"partition {partition}, and {known} is what there is to know"
                    )

    def check_counts(self, source: str, arrived: Iterable[ConsumerRecord]) -> None:
        """As much of each task has arrived as it says."""
        sent = Counter(dict(record.headers)[TASK_HEADER] for record in arrived)
        for task in self.book.tasks():
            if task.plan.source == source:
                number = dict(task.plan.edits.headers)[TASK_HEADER]
                if sent[number] != task.progress.counts.sent:
                    raise PropertyViolated(
                        f"a task tells what it sent: {task.id} of {source} says "
                        f"{task.progress.counts.sent}, and {sent[number]} have arrived"
                    )

    def check_obedience(self) -> None:
        """A task that was told to stop sends no more, and one that has ended does nothing."""
        for task_id, found in self.progress.items():
            for (_, before), (offset, after) in pairwise(found):
                if before.state.is_final:
                    raise PropertyViolated(
                        f"what has ended stays so: task {task_id} was {before.state}, and is "
                        f"{after.state} in {offset}"
                    )
            task, order = self.book.orders[task_id], self._orders[task_id]
            if task.wanted is not Wanted.STOPPED:
                continue
            sent_count = None
            for offset, progress in found:
                is_late = progress.beat_ms > order.timestamp + OBEDIENCE_MS
                if offset > order.offset and is_late and progress.counts.sent != sent_count:
                    raise PropertyViolated(
                        f"a stopped task sends no more: {task_id} was told so at "
                        f"{order.timestamp} ms, and sent at {progress.beat_ms} ms"
                    )
                sent_count = progress.counts.sent


def from_topic(records: Iterable[ConsumerRecord], source: str) -> list[ConsumerRecord]:
    """What was sent back of the letters of one topic."""
    wanted = (FROM_HEADER, source.encode())
    return [record for record in records if wanted in record.headers]
