"""A DeleteRecords request that waits until all replicas have dropped the records.

The leader raises its log start at once; followers learn of it with their next fetch. Only when the
low watermark, the smallest log start of the live replicas, has come as far does the client hear
that the records are gone. A partition that is not there when the time is over gets
REQUEST_TIMED_OUT, although its records will go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.purgatory import DelayedOperation


class AwaitedDeletion:
    """One partition's deletion that the replicas have to follow."""

    __slots__ = ("error", "is_settled", "offset", "partition")

    def __init__(self, partition: Partition, offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.error: KafkaError | None = None
        self.is_settled = False

    @property
    def low_watermark(self) -> int:
        return self.partition.low_watermark

    def settle(self) -> bool:
        """Whether it is known how this ends."""
        if not self.is_settled:
            try:
                self.partition.check_leader()
                self.is_settled = self.low_watermark >= self.offset
            except KafkaError as error:
                self.error = error
                self.is_settled = True
        return self.is_settled


class DelayedDeleteRecords(DelayedOperation[TopicPartition]):
    """Sets `done` when each of its deletions is settled or out of time."""

    __slots__ = ("_deletions", "done")

    def __init__(self, deletions: Sequence[AwaitedDeletion]) -> None:
        super().__init__()
        self._deletions = deletions
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def try_complete(self, key: TopicPartition | None) -> bool:
        done = True
        for deletion in self._deletions:
            done &= deletion.settle()
        return done

    def on_expiration(self) -> None:
        for deletion in self._deletions:
            if not deletion.settle():
                deletion.error = KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{deletion.partition.topic_partition} has replicas that still hold the "
                    "records.",
                )

    def on_complete(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
