"""Delayed delivery as handlers know it, without an engine: messages in a dict, changes in the log.

A change appends a record of its own to the partition, so that there is something to wait for.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.delay.waiting import (
    Changed,
    ChangeKind,
    DelayChange,
    DelayCounts,
    MessageName,
    WaitingMessage,
)
from headwater.replication.partition.partition import Partition
from headwater.wire.records import Record, encode_batch

MINUTE_MS = 60_000


class FakePartitionDelays:
    def __init__(self) -> None:
        self.partition: Partition | None = None
        self.messages: dict[int, WaitingMessage] = {}
        self.changes: list[DelayChange] = []
        self.cancelled = 0
        self.unknown = 0
        #: What the next questions get instead of an answer.
        self.errors: list[KafkaError] = []

    def add(
        self, offset: int, due_ms: int, sender_id: bytes = b"", key: bytes | None = None
    ) -> None:
        self.messages[offset] = WaitingMessage(offset, due_ms, 500, -1, sender_id, key, 10)

    def find(self, name: MessageName) -> list[WaitingMessage]:
        if name.sender_id:
            return [each for each in self.messages.values() if each.sender_id == name.sender_id]
        return [self.messages[name.offset]] if name.offset in self.messages else []

    async def between(
        self, from_ms: int, to_ms: int, limit: int, skip: int = 0
    ) -> list[WaitingMessage]:
        due = [each for each in self.messages.values() if from_ms <= each.due_ms <= to_ms]
        return sorted(due, key=lambda each: (each.due_ms, each.offset))[skip : skip + limit]

    def counts(self, now_ms: int) -> DelayCounts:
        waiting = self.messages.values()
        return DelayCounts(
            waiting=len(waiting),
            waiting_bytes=sum(each.size_bytes for each in waiting),
            due_within_minute=sum(each.due_ms < now_ms + MINUTE_MS for each in waiting),
            next_due_ms=min((each.due_ms for each in waiting), default=-1),
            delivered=0,
            cancelled=self.cancelled,
            expired=0,
            unknown=self.unknown,
            rolled_bytes=0,
            index_bytes=0,
        )

    def change(self, changes: Sequence[DelayChange], *, acks: int, now_ms: int) -> list[Changed]:
        assert self.partition is not None
        done = []
        end_offset = self.partition.log.log_end_offset
        for change in changes:
            self.changes.append(change)
            found = self.find(change.name)
            if found:
                batch = bytearray(encode_batch([Record(0, now_ms, b"change", b"")]))
                end_offset = self.partition.append(batch, acks=acks, now_ms=now_ms).last_offset + 1
            else:
                self.unknown += 1
            for message in found:
                if change.kind is ChangeKind.RESCHEDULE:
                    moved = message._replace(due_ms=change.due_ms)
                    self.messages[message.offset] = moved
                else:
                    del self.messages[message.offset]
                    self.cancelled += change.kind is ChangeKind.CANCEL
            done.append(Changed(tuple(each.offset for each in found), end_offset))
        return done


class FakeDelays:
    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, FakePartitionDelays] = {}

    def at(self, topic: str, partition: int = 0) -> FakePartitionDelays:
        return self.partitions.setdefault(TopicPartition(topic, partition), FakePartitionDelays())

    def of(self, partition: Partition) -> FakePartitionDelays:
        partition.check_leader()
        found = self.at(*partition.topic_partition)
        if found.errors:
            raise found.errors.pop(0)
        found.partition = partition
        return found
