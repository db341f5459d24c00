"""The topic of tasks: compacted, and all that there is to know of redrives.

    <task>                           what is wanted: plain records, seen at once
    <task>/progress                  how far it is   | in the transactions
    <task>/done/<partition>/<chunk>  what it sent    | that send letters

A runner that was killed leaves a transaction open for some seconds, behind which nothing committed
can be read. So orders are read uncommitted, which they are; progress is read up to there.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.topics import NewTopic
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.errors import DeadlineError
from headwater.delivery.redrive.clients import Clients
from headwater.delivery.redrive.letters.letter_reader import LetterReader, Span
from headwater.delivery.redrive.tasks.offset_ranges import pairs
from headwater.delivery.redrive.tasks.task import Progress, RedriveTask

TASK_TOPIC: Final = "__redrive"
#: One, so that a reader has all of it.
_PARTITION: Final = TopicPartition(TASK_TOPIC, 0)
_CONFIGS: Final = {"cleanup.policy": "compact"}
_READ_RECORDS: Final = 5000
#: As long as it takes until a transaction that nobody ends is aborted, and then some.
_STABLE_S: Final = 60.0
_STABLE_POLL_S: Final = 0.2
_NONSENSE: Final = (ValueError, TypeError, KeyError, AttributeError, KafkaError)


@dataclass(slots=True)
class TaskBook:
    """What stands in the topic. Records of a task may come in any order: the topic is compacted."""

    orders: dict[str, RedriveTask] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    #: Bounds of ranges by task, partition and chunk.
    done: dict[str, dict[tuple[int, int], list[int]]] = field(default_factory=dict)
    #: Where the next record will be.
    end: int = 0

    def task(self, task_id: str) -> RedriveTask | None:
        task = self.orders.get(task_id)
        progress = self.progress.get(task_id)
        return task if task is None or progress is None else replace(task, progress=progress)

    def tasks(self) -> list[RedriveTask]:
        """All of them, the oldest first."""
        found = [task for task_id in self.orders if (task := self.task(task_id)) is not None]
        return sorted(found, key=lambda task: (task.created_ms, task.id))

    def ranges_of(self, task_id: str) -> dict[int, list[tuple[int, int]]]:
        """What a task has sent, by partition."""
        found: dict[int, list[tuple[int, int]]] = {}
        for (partition, _), bounds in self.done.get(task_id, {}).items():
            found.setdefault(partition, []).extend(pairs(bounds))
        return found

    def last_chunk(self, task_id: str, partition: int) -> tuple[int, list[int]]:
        chunks = self.done.get(task_id, {})
        number = max((chunk for at, chunk in chunks if at == partition), default=0)
        return number, chunks.get((partition, number), [])

    def learn(self, record: ConsumerRecord) -> None:
        """Take a record over. What makes no sense is not ours, and is left out."""
        try:
            task_id, _, rest = record.key.decode().partition("/")
            document = None if record.value is None else json.loads(record.value)
            kind, *place = rest.split("/")
            if kind == "done":
                self._learn_done(task_id, place, document)
            elif kind == "progress":
                if document is None:
                    self.progress.pop(task_id, None)
                else:
                    self.progress[task_id] = Progress.from_json(document)
            elif document is None:
                self.orders.pop(task_id, None)
            else:
                self.orders[task_id] = RedriveTask.from_order(task_id, document)
        except _NONSENSE:
            return

    def _learn_done(self, task_id: str, place: list[str], document: Any) -> None:
        partition, chunk = map(int, place)
        chunks = self.done.setdefault(task_id, {})
        if document is None:
            chunks.pop((partition, chunk), None)
            return
        bounds = [int(bound) for bound in document]
        if len(bounds) % 2 == 0:
            chunks[partition, chunk] = bounds


class TaskTopic:
    """Reads the topic, and has it made when there is a first task."""

    def __init__(self, clients: Clients, admin: AsyncAdmin) -> None:
        self._clients = clients
        self._admin = admin

    async def have(self, source: TopicInfo) -> None:
        """See to it that the topic is there, with as many replicas as the letters have.

        Were it lost before them, nobody would know which of them were sent.
        """
        replica_count = max((len(each.replicas) for each in source.partitions), default=-1)
        topic = NewTopic(TASK_TOPIC, 1, replica_count, configs=_CONFIGS)
        outcome = (await self._admin.create_topics([topic], raise_errors=False))[TASK_TOPIC]
        if isinstance(outcome, KafkaError) and outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome

    async def is_there(self) -> bool:
        found = (await self._admin.describe_topics([TASK_TOPIC]))[TASK_TOPIC]
        if not isinstance(found, KafkaError):
            return True
        if found.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        raise found

    async def read(self, *, wait_until_stable: bool = False) -> TaskBook:
        """What stands there. With a wait, nothing is undecided that was written before."""
        if not await self.is_there():
            return TaskBook()
        uncommitted = self._clients.order_consumer()
        committed = self._clients.letter_consumer()
        async with uncommitted, committed:
            end = (await uncommitted.end_offsets([_PARTITION]))[_PARTITION]
            stable = (await committed.end_offsets([_PARTITION]))[_PARTITION]
            if wait_until_stable:
                stable = await self._wait_until_stable(committed, end)
            first = (await committed.beginning_offsets([_PARTITION]))[_PARTITION]
            book = TaskBook(end=end)
            for record in await _read_all(committed, Span(first, stable)):
                book.learn(record)
            for record in await _read_all(uncommitted, Span(max(first, stable), end)):
                if b"/" not in (record.key or b""):
                    book.learn(record)
            return book

    async def _wait_until_stable(self, committed: AsyncConsumer, end: int) -> int:
        deadline_s = self._clients.now_s() + _STABLE_S
        while True:
            stable = (await committed.end_offsets([_PARTITION]))[_PARTITION]
            if stable >= end:
                return stable
            if self._clients.now_s() > deadline_s:
                raise DeadlineError(
                    f"A transaction in {TASK_TOPIC} has been open for {_STABLE_S:.0f} s: see "
                    "`headwater transactions find-hanging`."
                )
            await asyncio.sleep(_STABLE_POLL_S)


class Orders:
    """What is wanted of one task while it runs."""

    def __init__(self, consumer: AsyncConsumer, task: RedriveTask, end: int) -> None:
        self._consumer = consumer
        self._book = TaskBook({task.id: task})
        self._id = task.id
        consumer.assign([_PARTITION])
        consumer.seek(_PARTITION, end)

    async def latest(self) -> RedriveTask | None:
        """The task as it was ordered last; None if it was taken out of the topic."""
        for record in await self._consumer.poll(0, _READ_RECORDS):
            if record.key == self._id.encode():
                self._book.learn(record)
        return self._book.orders.get(self._id)


async def _read_all(consumer: AsyncConsumer, span: Span) -> list[ConsumerRecord]:
    reader = LetterReader(consumer, TASK_TOPIC, {_PARTITION.partition: span})
    records: list[ConsumerRecord] = []
    while not reader.is_done:
        records += await reader.read(_READ_RECORDS, 1.0)
    return records
