"""A partition of one log: what deliveries need of it, without replication."""

from __future__ import annotations

from headwater.delay.partition_delays import PartitionDelays
from headwater.sim.campaigns.logs import PARTITION
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import AppendResult, PartitionLog
from headwater.storage.producers.entry import AppendOrigin


class LonePartition:
    """What deliveries need of a partition; somebody else decides who leads and what is safe."""

    def __init__(self, log: PartitionLog) -> None:
        self.topic_partition = PARTITION
        self.log = log
        self.is_leader = True
        self.is_removed = False
        self.leader_epoch = 0
        #: How many appends go well before one fails.
        self.appends_left: int | None = None
        self.deliveries: PartitionDelays | None = None

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    def check_leader(self) -> None:
        """Nobody else asks."""

    def append(
        self,
        batch: bytes,
        *,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        if self.appends_left is not None:
            self.appends_left -= 1
            if self.appends_left < 0:
                self.appends_left = None
                raise LogStorageError("The disk takes nothing just now.")
        result = self.log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
        )
        if self.deliveries is not None:
            self.deliveries.wake()
        return result
