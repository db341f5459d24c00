"""Notes of attempts that may kill the process, kept with a partition's committed offset.

Before a record is handled, its own offset is committed, which changes nothing but the text that a
commit can carry: which record is being attempted, and for the how many-th time. Whoever reads the
partition next finds it, and if the record was never committed past, the attempt ended with its
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.record import ConsumerRecord


class DiedError(Exception):
    """What is told of a record whose every attempt ended with its process: so many."""

    def __init__(self, count: int) -> None:
        super().__init__(f"the process died while handling it, {count} times")
        self.count = count


class CrashNotes:
    """`attempts_max` processes may die of a record before it is sent on."""

    def __init__(self, attempts_max: int) -> None:
        self._attempts_max = attempts_max
        #: By partition: the record that was being handled when a process died, and how often.
        self._found: dict[TopicPartition, tuple[int, int]] = {}

    def learn(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """What was found on taking over these partitions."""
        for partition, offset in committed.items():
            self._found.pop(partition, None)
            note = None if offset is None else _read(offset.metadata)
            if note is not None:
                self._found[partition] = note

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._found.pop(partition, None)

    def begin(self, record: ConsumerRecord) -> OffsetAndMetadata:
        """What to commit before it is handled; raises `DiedError` if it must not be."""
        died_count = self._died_count(record)
        if died_count >= self._attempts_max:
            raise DiedError(died_count)
        text = json.dumps({"attempting": record.offset, "count": died_count + 1})
        return OffsetAndMetadata(record.offset, text, record.leader_epoch)

    def _died_count(self, record: ConsumerRecord) -> int:
        offset, count = self._found.get(record.topic_partition, (-1, 0))
        return count if offset == record.offset else 0


def _read(metadata: str) -> tuple[int, int] | None:
    """A note, if that is what the text is; others may have written anything there."""
    try:
        note = json.loads(metadata)
        return int(note["attempting"]), int(note["count"])
    except (ValueError, KeyError, TypeError):
        return None
