"""What was committed in a partition so far, as somebody sees it who misses nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.base.ids import TopicPartition
from headwater.sim.checkers.delivery_model import DeliveryModel
from headwater.sim.histories.delay_history import VisibleRecord
from headwater.storage.partition_log import PartitionLog
from headwater.wire.delayed.copies import OrderKey
from headwater.wire.records import BatchHeader, ControlType, decode_batch, read_control_type


@dataclass
class WatchedPartition:
    """What was committed in a partition so far, as somebody sees it who misses nothing."""

    partition: TopicPartition
    model: DeliveryModel = field(default_factory=DeliveryModel)
    batches: list[tuple[BatchHeader, bytes]] = field(default_factory=list)
    #: What was seen before a loss of power, and may be gone since.
    doubtful: list[tuple[BatchHeader, bytes]] = field(default_factory=list)
    #: By leader epoch, the end that its consumers were told last.
    visible_ends: dict[int, int] = field(default_factory=dict)
    #: All in front of it was acknowledged to somebody.
    acknowledged_end: int = 0

    def take(self, header: BatchHeader, data: bytes) -> None:
        self.batches.append((header, data))
        self.model.apply(header, data)

    def visible(self, *, committed_only: bool) -> list[VisibleRecord]:
        """All that consumers can ever have seen."""
        found: dict[int, VisibleRecord] = {}
        #: By producer, the offsets of its open transaction.
        undecided: dict[int, list[int]] = {}
        for header, data in self.batches:
            if header.is_delayed:
                continue
            records = decode_batch(data)
            if header.is_control:
                offsets = undecided.pop(header.producer_id, [])
                if committed_only and read_control_type(records[0]) is ControlType.ABORT:
                    for offset in offsets:
                        del found[offset]
                continue
            for record in records:
                found[record.offset] = VisibleRecord(record.offset, record.value or b"")
                if header.is_transactional:
                    undecided.setdefault(header.producer_id, []).append(record.offset)
        return list(found.values())

    def agrees(self, watermark: OrderKey, log: PartitionLog) -> bool:
        """Whether this is what a log says was delivered last; without copies, it need not know."""
        if watermark == self.model.watermark:
            return True
        last = max((copy.offset for copy in self.model.copies.values()), default=-1)
        return last < log.log_start_offset and watermark < self.model.watermark

    def recall(self, log_start: int) -> bool:
        """Whether what is deleted by now was seen before it was in doubt: then it was there."""
        for header, data in self.doubtful:
            if header.base_offset == self.model.end and header.next_offset <= log_start:
                self.take(header, data)
        return self.model.end >= log_start

    def set_back(self, offset: int) -> None:
        """What was at this offset and behind may be gone."""
        self.visible_ends.clear()
        kept = [each for each in self.batches if each[0].next_offset <= offset]
        self.doubtful = self.batches[len(kept) :]
        self.batches, self.model = [], DeliveryModel()
        for header, data in kept:
            self.take(header, data)
