"""The records of a poll while they are handed out one by one, as iterating over a consumer does.

A user may stop iterating in the middle, commit there, seek, or go on with `poll`. So what has not
been handed out is not consumed: positions are before it, and it comes first next time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import length_hint

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord


class HandOut:
    """Owned by the polling thread."""

    __slots__ = ("_iterator", "_records")

    def __init__(self) -> None:
        self._records: list[ConsumerRecord] = []
        self._iterator: Iterator[ConsumerRecord] = iter(())

    def begin(self, records: list[ConsumerRecord]) -> Iterator[ConsumerRecord]:
        """Hand these out; the iterator ends early if they are taken back."""
        self._records = records
        self._iterator = iter(records)
        return self._iterator

    def rest(self) -> list[ConsumerRecord]:
        """What has not been handed out."""
        left = length_hint(self._iterator)
        return self._records[len(self._records) - left :] if left else []

    def take_back(self) -> list[ConsumerRecord]:
        """The same; it will not be handed out by the iterator any more."""
        rest = list(self._iterator)
        self._records = []
        return rest

    def first_left(self) -> dict[TopicPartition, ConsumerRecord]:
        """The first record of each partition that has not been handed out."""
        first: dict[TopicPartition, ConsumerRecord] = {}
        for record in self.rest():
            first.setdefault(record.topic_partition, record)
        return first

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ConsumerRecord]:
        """Take back what is left of these; returns the first record of each that had any."""
        first = {
            partition: record
            for partition, record in self.first_left().items()
            if partition in partitions
        }
        if first:
            kept = [record for record in self.take_back() if record.topic_partition not in first]
            # The iterator that is out has ended; who asked for it asks for what comes next.
            self.begin(kept)
        return first
