"""Reading many partitions for one fetch request, within its byte budgets.

A request names partitions with an offset and a limit each, and a limit for all. The order of the
partitions is the order of service. The first batch that there is at all comes whole even if it is
larger than every limit, because otherwise a reader could never get past it.

A follower reads like a consumer, but to the very end of the leader's log; and what it asks for says
how far it is. The leader takes note of that before it reads anything, so that the answer has the
high watermark which the request itself has brought about.

A consumer may read from a follower too (KIP-392), up to the high watermark that the leader told it.
A leader sends a consumer there that has said where it is: see `leading.read_replica`. What a
follower does not have yet, it cannot know to be out of range: the leader alone knows where the log
ends, so whoever asks for more than the follower has is sent back to it (OFFSET_NOT_AVAILABLE).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.leading.leadership import Leadership, unknown_follower
from headwater.replication.leading.remote_replica import FetchClock
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partition_read import (
    PartitionRead,
    nothing_for_follower,
    read_for_consumer,
    read_for_follower,
)
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.storage.leader_epochs import EpochEndOffset

#: Replica ids from 0 on are brokers; consumers send -1.
CONSUMER_REPLICA_ID = -1


class PartitionLookup(Protocol):
    """Where partitions are found: `Partitions`."""

    def get(self, topic: str, partition: int) -> Partition:
        """The partition, or a `KafkaError` that says why it cannot be had here."""
        ...

    def topic_name(self, topic_id: uuid.UUID) -> str:
        """The name of a topic; UNKNOWN_TOPIC_ID if there is none."""
        ...


class FetchTarget:
    """What a request wants of one partition."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
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
        log_start_offset: int = -1,
    ) -> None:
        #: Empty where the request names the topic by an id that nobody knows.
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        #: Where a follower's own log starts.
        self.log_start_offset = log_start_offset


class FetchLimits(NamedTuple):
    """What holds for a request as a whole."""

    max_bytes: int
    min_bytes: int = 1
    max_wait_ms: int = 0
    committed_only: bool = False
    #: The broker that fetches as a follower, and its epoch.
    replica_id: int = CONSUMER_REPLICA_ID
    replica_epoch: int = -1
    #: Whether a consumer may be served by a broker that follows.
    may_read_followers: bool = False
    #: Where the consumer is, if replicas are chosen by that; empty otherwise.
    reader_rack: str = ""
    #: Where some of the replicas are throttled.
    throttles: ReplicationThrottles | None = None

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class FetchedPartition(NamedTuple):
    """What came of one target: an error, a place where histories part, or a stretch of the log."""

    target: FetchTarget
    partition: Partition | None = None
    error: KafkaError | None = None
    read: PartitionRead | None = None
    diverging: EpochEndOffset | None = None
    #: The broker that this reader is to read from instead.
    read_replica: int | None = None

    @property
    def size_bytes(self) -> int:
        return 0 if self.read is None else self.read.log_read.counted_bytes


class Fetched(NamedTuple):
    partitions: list[FetchedPartition]
    size_bytes: int
    #: Whether there is something to tell that must not wait: an error, a divergence, or records
    #: with more behind them that did not fit into one region: see `LogRead`.
    is_urgent: bool
    #: Whether of some partition there is only a header, which can wait: see `LogRead`.
    has_bare: bool = False
    #: How long until something can be read that a throttle holds back now; None if it does not.
    held_back_ms: float | None = None


def find_partition(partitions: PartitionLookup, target: FetchTarget) -> Partition:
    """The partition that is meant; `KafkaError` if this broker does not have it."""
    topic = target.topic or partitions.topic_name(target.topic_id)
    return partitions.get(topic, target.partition)


def note_follower(
    partitions: PartitionLookup,
    targets: Iterable[FetchTarget],
    limits: FetchLimits,
    clock: FetchClock | None = None,
) -> None:
    """Take note of how far a follower is with each partition; reading tells it what is wrong."""
    replica_id = limits.replica_id
    for target in targets:
        leadership = None
        try:
            partition = find_partition(partitions, target)
            leadership = partition.leadership
            partition.check_leader(target.current_leader_epoch)
            leadership = _leadership(partition, target, limits)
            is_well = find_divergence(partition, target) is None
            partition.log.check_in_range(target.fetch_offset)
        except KafkaError:
            is_well = False
        if leadership is None:
            continue
        if is_well:
            offset, start = target.fetch_offset, target.log_start_offset
            leadership.follower_fetched(replica_id, limits.replica_epoch, offset, start, clock)
        else:
            leadership.follower_left(replica_id)


def read_partitions(
    partitions: PartitionLookup, targets: Iterable[FetchTarget], limits: FetchLimits
) -> Fetched:
    """Read all targets, in order, until the budget is used up."""
    fetched: list[FetchedPartition] = []
    budget_bytes = limits.max_bytes
    total_bytes = 0
    is_urgent = has_bare = False
    held_back_ms: float | None = None
    is_follower, rack = limits.is_follower, limits.reader_rack
    for target in targets:
        partition: Partition | None = None
        try:
            partition = find_partition(partitions, target)
            check_reader(partition, target, limits)
            if is_follower:
                _leadership(partition, target, limits)
            elif rack and partition.leadership is not None:
                replica_id = partition.leadership.read_replica(rack, target.fetch_offset)
                if replica_id is not None:
                    fetched.append(FetchedPartition(target, partition, read_replica=replica_id))
                    is_urgent = True
                    continue
            diverging = find_divergence(partition, target)
            if diverging is not None:
                fetched.append(FetchedPartition(target, partition, diverging=diverging))
                is_urgent = True
                continue
            wait_ms = throttle_wait_ms(partition, target, limits)
            if wait_ms:
                held_back_ms = wait_ms if held_back_ms is None else min(wait_ms, held_back_ms)
            read = read_partition(
                partition,
                target,
                min(target.max_bytes, budget_bytes),
                limits,
                min_one_batch=total_bytes == 0,
            )
        except KafkaError as error:
            fetched.append(FetchedPartition(target, partition, error=error))
            is_urgent = True
            continue
        fetched.append(FetchedPartition(target, partition, read=read))
        size = read.log_read.counted_bytes
        is_urgent = is_urgent or read.log_read.has_more
        if size == 0:
            has_bare = has_bare or read.log_read.is_bare
        total_bytes += size
        budget_bytes = max(budget_bytes - size, 0)
    return Fetched(fetched, total_bytes, is_urgent, has_bare, held_back_ms)


def check_reader(partition: Partition, target: FetchTarget, limits: FetchLimits) -> None:
    """Raise unless this broker may serve the reader: as the leader, or to a consumer otherwise."""
    if partition.is_leader or not limits.may_read_followers:
        partition.check_leader(target.current_leader_epoch)
        return
    partition.check_replica(target.current_leader_epoch)
    end = partition.log_end_offset
    if target.fetch_offset > end:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"{partition.topic_partition} ends at {end} on this follower, and {target.fetch_offset}"
            f" is asked for; broker {partition.leader}, its leader, may have more.",
        )


def read_partition(
    partition: Partition,
    target: FetchTarget,
    max_bytes: int,
    limits: FetchLimits,
    *,
    min_one_batch: bool,
) -> PartitionRead:
    """What this reader may see of one partition, from the offset that it asks for."""
    if limits.is_follower:
        if throttle_wait_ms(partition, target, limits):
            return nothing_for_follower(partition.log)
        return read_for_follower(
            partition.log, target.fetch_offset, max_bytes, min_one_batch=min_one_batch
        )
    return read_for_consumer(
        partition.log,
        target.fetch_offset,
        max_bytes,
        committed_only=limits.committed_only,
        min_one_batch=min_one_batch,
    )


def throttle_wait_ms(partition: Partition, target: FetchTarget, limits: FetchLimits) -> float:
    """How long a follower has to wait for what there is; 0.0 if it need not wait."""
    if limits.throttles is None or target.fetch_offset >= partition.log_end_offset:
        return 0.0
    return limits.throttles.leader_wait_ms(partition, limits.replica_id)


def _leadership(partition: Partition, target: FetchTarget, limits: FetchLimits) -> Leadership:
    """What the leader knows of its followers, if the one that asks is among them."""
    leadership = partition.leadership
    if leadership is None:
        raise unknown_follower(
            partition.topic_partition, limits.replica_id, target.current_leader_epoch
        )
    leadership.check_follower(limits.replica_id, limits.replica_epoch, target.current_leader_epoch)
    return leadership


def find_divergence(partition: Partition, target: FetchTarget) -> EpochEndOffset | None:
    """Where a reader's log and this one part ways, if it wrote what this leader never had."""
    if target.last_fetched_epoch < 0 or target.fetch_offset < partition.log.log_start_offset:
        return None  # In the latter case reading says that it is out of range.
    if not partition.is_leader and target.fetch_offset > partition.high_watermark:
        return None  # What a follower has there may be cut off yet: nothing follows from it.
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
