"""Reading many partitions for one fetch request, within its byte budgets.

A request names partitions with an offset and a limit each, and a limit for all. The order of the
partitions is the order of service. The first batch that there is at all comes whole even if it is
larger than every limit, because otherwise a reader could never get past it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.partition import Partition, PartitionRead
from headwater.replication.partitions import Partitions
from headwater.storage.leader_epochs import EpochEndOffset

#: Replica ids from 0 on are brokers; consumers send -1.
CONSUMER_REPLICA_ID = -1


class FetchTarget:
    """What a request wants of one partition."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: uuid.UUID,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        #: Empty where the request names the topic by an id that nobody knows.
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch


class FetchLimits(NamedTuple):
    """What holds for a request as a whole."""

    max_bytes: int
    min_bytes: int = 1
    max_wait_ms: int = 0
    committed_only: bool = False


class FetchedPartition(NamedTuple):
    """What came of one target: an error, a place where histories part, or a stretch of the log."""

    target: FetchTarget
    partition: Partition | None = None
    error: KafkaError | None = None
    read: PartitionRead | None = None
    diverging: EpochEndOffset | None = None

    @property
    def size_bytes(self) -> int:
        return 0 if self.read is None else self.read.log_read.size


class Fetched(NamedTuple):
    partitions: list[FetchedPartition]
    size_bytes: int
    #: Whether there is something to tell besides records, which must not wait.
    is_urgent: bool


def read_partitions(
    partitions: Partitions, targets: Iterable[FetchTarget], limits: FetchLimits
) -> Fetched:
    """Read all targets, in order, until the budget is used up."""
    fetched: list[FetchedPartition] = []
    budget_bytes = limits.max_bytes
    total_bytes = 0
    is_urgent = False
    for target in targets:
        partition: Partition | None = None
        try:
            partition = (
                partitions.get(target.topic, target.partition)
                if target.topic
                else partitions.get(partitions.topic_name(target.topic_id), target.partition)
            )
            partition.check_leader(target.current_leader_epoch)
            diverging = find_divergence(partition, target)
            if diverging is not None:
                fetched.append(FetchedPartition(target, partition, diverging=diverging))
                is_urgent = True
                continue
            read = partition.read(
                target.fetch_offset,
                min(target.max_bytes, budget_bytes),
                committed_only=limits.committed_only,
                min_one_batch=total_bytes == 0,
            )
        except KafkaError as error:
            fetched.append(FetchedPartition(target, partition, error=error))
            is_urgent = True
            continue
        fetched.append(FetchedPartition(target, partition, read=read))
        size = read.log_read.size
        total_bytes += size
        budget_bytes = max(budget_bytes - size, 0)
    return Fetched(fetched, total_bytes, is_urgent)


def find_divergence(partition: Partition, target: FetchTarget) -> EpochEndOffset | None:
    """Where a reader's log and this one part ways, if it wrote what this leader never had."""
    if target.last_fetched_epoch < 0:
        return None
    end = partition.end_offset_for(target.last_fetched_epoch)
    if end.epoch < 0:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Nothing is known here of leader epoch {target.last_fetched_epoch} of "
            f"{partition.topic_partition}.",
        )
    if end.epoch < target.last_fetched_epoch or end.end_offset < target.fetch_offset:
        return end
    return None
