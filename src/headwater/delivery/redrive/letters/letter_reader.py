"""Reads the letters of a topic between given offsets, each partition to its end and no further.

The end is fixed before the first letter is read, so that reading ends also where letters come
faster than they are read. Only committed letters are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord

_CONSUMER: Final = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}


class Span(NamedTuple):
    """The offsets of a partition that are read: from the first, up to the end."""

    first: int
    end: int


def letter_consumer(
    config: Mapping[str, object], kind: type[AsyncConsumer] = AsyncConsumer
) -> AsyncConsumer:
    return kind({**config, **_CONSUMER})


class LetterReader:
    """Owns the positions of a consumer, which is somebody else's to close."""

    def __init__(self, consumer: AsyncConsumer, topic: str, spans: Mapping[int, Span]) -> None:
        self._consumer = consumer
        self._topic = topic
        self._ends = {partition: span.end for partition, span in spans.items()}
        #: The next offset to read, by partition.
        self.positions = {partition: span.first for partition, span in spans.items()}
        self._unfinished = [partition for partition, span in spans.items() if span.first < span.end]
        self._assign()

    @property
    def is_done(self) -> bool:
        return not self._unfinished

    async def read(self, records_max: int, timeout_s: float) -> list[ConsumerRecord]:
        """The next letters; none if none come in that time, or there are no more."""
        if self.is_done:
            return []
        polled = await self._consumer.poll(timeout_s, records_max)
        ends = self._ends
        records = [record for record in polled if record.offset < ends[record.partition]]
        if not polled:
            await self._lower_ends()
        await self._advance()
        return records

    async def _lower_ends(self) -> None:
        """A log that has lost its end, to an unclean election say, has no letters to wait for."""
        partitions = [TopicPartition(self._topic, each) for each in self._unfinished]
        for partition, end in (await self._consumer.end_offsets(partitions)).items():
            number = partition.partition
            self._ends[number] = min(self._ends[number], end)

    async def _advance(self) -> None:
        """Positions also pass what is no record: marks of transactions, and what was aborted."""
        unfinished = []
        for partition in self._unfinished:
            position = await self._consumer.position(TopicPartition(self._topic, partition))
            self.positions[partition] = min(position, self._ends[partition])
            if position < self._ends[partition]:
                unfinished.append(partition)
        if unfinished != self._unfinished:
            self._unfinished = unfinished
            self._assign()

    def _assign(self) -> None:
        partitions = [TopicPartition(self._topic, each) for each in self._unfinished]
        self._consumer.assign(partitions)
        for partition in partitions:
            self._consumer.seek(partition, self.positions[partition.partition])


async def spans_of(consumer: AsyncConsumer, topic: str) -> dict[int, Span]:
    """All that can be read of a topic now."""
    partitions = [
        TopicPartition(topic, each.partition) for each in await consumer.partitions_for(topic)
    ]
    firsts = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    return {each.partition: Span(firsts[each], ends[each]) for each in sorted(partitions)}
