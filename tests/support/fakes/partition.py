"""A partition's leader, played: what it accepts of numbered batches, and what a reader finds there.

It keeps the rules of Kafka's brokers: the next number of the newest epoch is accepted, as is any
number of a producer that is not known at all; one of the last five batches is answered as the first
time, all else is refused. It also remembers which record came under which number, and fails the
test when a number comes again with another record.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.base.errors import ErrorCode
from headwater.client.producer.idempotence.partition_sequence import advance
from headwater.wire.records import decode_batch, read_batch_header


class StoredBatch(NamedTuple):
    producer_id: int
    values: tuple[bytes, ...]
    is_transactional: bool


class Marker(NamedTuple):
    producer_id: int
    is_commit: bool


class RecentBatch(NamedTuple):
    base_sequence: int
    record_count: int
    offset: int


@dataclass
class ProducerEntry:
    epoch: int
    recent: deque[RecentBatch] = field(default_factory=lambda: deque(maxlen=5))


class FakePartition:
    def __init__(self) -> None:
        self.entries: list[StoredBatch | Marker] = []
        self.next_offset = 0
        self._producers: dict[int, ProducerEntry] = {}
        self._values_by_number: dict[tuple[int, int, int], bytes] = {}

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        """Take a batch as it came; the error, and the offset of its first record."""
        header = read_batch_header(memoryview(data), 0)
        values = tuple(record.value or b"" for record in decode_batch(memoryview(data), 0))
        self._check_numbers(header.producer_id, header.producer_epoch, header.base_sequence, values)
        entry = self._producers.get(header.producer_id)
        is_stranger = entry is None
        if entry is None:
            # Whatever comes first from a producer that nobody knows is taken, as Kafka does.
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_epoch)
        elif header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        elif header.producer_epoch > entry.epoch:
            if header.base_sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_epoch)
        for recent in entry.recent:
            if (recent.base_sequence, recent.record_count) == (header.base_sequence, len(values)):
                return ErrorCode.NONE, recent.offset
        if entry.recent:
            last = entry.recent[-1]
            if header.base_sequence != advance(last.base_sequence, last.record_count):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        elif header.base_sequence != 0 and not is_stranger:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = self.next_offset
        self.entries.append(StoredBatch(header.producer_id, values, header.is_transactional))
        entry.recent.append(RecentBatch(header.base_sequence, len(values), offset))
        self.next_offset += len(values)
        return ErrorCode.NONE, offset

    def end_transaction(self, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        """Write a marker; a new epoch in it fences whatever is still on its way."""
        self.entries.append(Marker(producer_id, is_commit))
        self.next_offset += 1
        entry = self._producers.setdefault(producer_id, ProducerEntry(epoch))
        if epoch > entry.epoch:
            self._producers[producer_id] = ProducerEntry(epoch)

    def forget_last_batch(self) -> None:
        """Lose what was acknowledged, as after an unclean election."""
        lost = self.entries.pop()
        assert isinstance(lost, StoredBatch)
        self._producers[lost.producer_id].recent.pop()

    def values(self) -> list[bytes]:
        return [
            value
            for entry in self.entries
            if isinstance(entry, StoredBatch)
            for value in entry.values
        ]

    def committed_values(self) -> list[bytes]:
        """What a read_committed reader finds, in order."""
        found: list[bytes] = []
        open_batches: list[StoredBatch] = []
        for entry in self.entries:
            if isinstance(entry, StoredBatch):
                open_batches.append(entry)
                continue
            ended = [each for each in open_batches if each.producer_id == entry.producer_id]
            open_batches = [each for each in open_batches if each.producer_id != entry.producer_id]
            if entry.is_commit:
                found += [value for each in ended for value in each.values]
        return found

    def _check_numbers(
        self, producer_id: int, epoch: int, base_sequence: int, values: tuple[bytes, ...]
    ) -> None:
        for index, value in enumerate(values):
            number = (producer_id, epoch, advance(base_sequence, index))
            assert self._values_by_number.setdefault(number, value) == value, (
                f"number {number} came with {value!r} and with another record before"
            )
