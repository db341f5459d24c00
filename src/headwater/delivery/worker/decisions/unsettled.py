"""Failed records that are not written to the retry topic yet: each goes with the commit past it.

A record has one outcome, done or sent on, because the offset that says it is done with and the copy
that is sent on are committed in one transaction, or neither is. So a letter waits here until the
offset to be committed is beyond it, and leaves only when that commit is known to have happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.producer.record import ProducerRecord

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Letter(NamedTuple):
    """What is sent on of the record at this place."""

    topic_partition: TopicPartition
    offset: int
    produced: ProducerRecord
    is_dead: bool


class Settlement(NamedTuple):
    """What is to be committed at once. Without offsets: wherever the consumer is."""

    offsets: Offsets | None
    letters: list[Letter]


class Unsettled:
    """Not for two threads at a time."""

    def __init__(self) -> None:
        self._letters: dict[TopicPartition, dict[int, Letter]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._letters.values()))

    def partitions(self) -> set[TopicPartition]:
        return set(self._letters)

    def add(self, letter: Letter) -> None:
        """Or replace what was to be sent of the same record."""
        self._letters.setdefault(letter.topic_partition, {})[letter.offset] = letter

    def covered_by(self, offsets: Offsets) -> list[Letter]:
        """What has to be written if these offsets are committed, in the order of offsets."""
        return [
            self._letters[partition][offset]
            for partition, committed in offsets.items()
            for offset in sorted(self._letters.get(partition, ()))
            if offset < committed.offset
        ]

    def remove(self, letters: Iterable[Letter]) -> None:
        """These are written."""
        for letter in letters:
            of_partition = self._letters.get(letter.topic_partition, {})
            of_partition.pop(letter.offset, None)
            if not of_partition:
                self._letters.pop(letter.topic_partition, None)

    def forget_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> int:
        """These were found to be committed: so what is before them was written; tells how much.

        Nobody but this worker commits for a partition that it has, and it never commits past a
        letter without writing it.
        """
        known = {partition: offset for partition, offset in offsets.items() if offset is not None}
        written = self.covered_by(known)
        self.remove(written)
        return len(written)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """They belong to others now, who will read the records again."""
        for partition in partitions:
            self._letters.pop(partition, None)
