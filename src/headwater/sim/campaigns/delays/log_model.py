"""The model of a log's deliveries, told every batch, which can go back to an earlier end."""

from __future__ import annotations

from headwater.sim.checkers.delivery_model import DeliveryModel
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import BatchHeader, iter_batch_headers


class LogModel:
    #: What is followed: another object after each opening.
    log: PartitionLog

    def __init__(self) -> None:
        self.model = DeliveryModel()
        #: Every batch since the beginning, and where the log began when it came.
        self._told: list[tuple[BatchHeader, bytes, int]] = []

    def tell(self) -> None:
        """All that was appended since."""
        self.model.start = self.log.log_start_offset
        while self.model.end < self.log.log_end_offset:
            read = self.log.read(max(self.model.end, self.model.start), 1, min_one_batch=True)
            if read.region is None:
                return
            data = read.region.read()
            for start, header in iter_batch_headers(data):
                batch = data[start : start + header.size_bytes]
                self._told.append((header, batch, self.model.start))
                self.model.apply(header, batch)

    def forget_behind(self, end_offset: int) -> None:
        self._told = [each for each in self._told if each[0].next_offset <= end_offset]
        self.model = self.model_at(end_offset)

    def model_at(self, end_offset: int) -> DeliveryModel:
        """What the log says in front of an offset."""
        model = DeliveryModel()
        for header, batch, start in self._told:
            if header.next_offset <= end_offset:
                model.start = start
                model.apply(header, batch)
        model.start = self.log.log_start_offset
        return model
