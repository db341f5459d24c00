"""One partition as this broker sees it: its role, its replicas, and how far it is replicated.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset (LEO)

The leader takes appends and serves reads. Its high watermark is the smallest LEO among the in-sync
replicas (ISR): what lies in front of it survives the leader, and consumers see nothing behind it.
`leader_epoch` counts the leaders; a request that names another epoch than the current one comes
from somebody who missed an election, or heard of one before this broker did.

Two things make an append safe enough to acknowledge with acks=all: that the high watermark has
passed it, and, where `acks.all.flush` asks for it, that it is on this broker's disk. The latter is
a *shared fsync*: appends that wait while one runs are covered by the next, however many they are.

The owner is the broker's event loop. Who waits for a partition is told through `PartitionEvents`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image import PartitionImage, is_internal
from headwater.replication.append_turns import AppendTurn, AppendTurns
from headwater.replication.fsync_rounds import FsyncRounds
from headwater.replication.partition_rules import ACKS_ALL, AcksAllFlush, PartitionRules
from headwater.replication.transaction_turns import TransactionTurns
from headwater.replication.write_failures import WriteFailures
from headwater.storage.directories.maintenance import must_flush
from headwater.storage.errors import LogStorageError
from headwater.storage.flush import RunInThread
from headwater.storage.leader_append import (
    INSPECTED_INLINE_BYTES_MAX,
    PreparedBatches,
    prepare_batches,
)
from headwater.storage.leader_epochs import EpochEndOffset
from headwater.storage.log_config import LONG_MAX
from headwater.storage.log_reads import LogRead
from headwater.storage.partition_log import AppendResult, PartitionLog
from headwater.storage.plain_append import append_plain_batch
from headwater.storage.producer_entry import AppendOrigin
from headwater.storage.retention import delete_records_before
from headwater.storage.transaction_index import AbortedTransaction
from headwater.wire.records import Buffer

#: A request that names no leader epoch.
NO_LEADER_EPOCH = -1


class PartitionEvents(Protocol):
    """Who is told what happens to a partition."""

    def on_high_watermark(self, partition: Partition) -> None:
        """Readers may see more, and writers who waited for the replicas may go on."""
        ...

    def on_durable(self, partition: Partition) -> None:
        """More of the log is on disk, or its disk has failed."""
        ...


class PartitionRead(NamedTuple):
    """What a reader gets, and how far the partition was when it was read."""

    log_read: LogRead
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    #: None for readers who see uncommitted records too.
    aborted: Sequence[AbortedTransaction] | None


class Partition:
    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        log: PartitionLog,
        image: PartitionImage,
        *,
        node_id: int,
        rules: PartitionRules,
        events: PartitionEvents,
        write_failures: WriteFailures,
        run_in_thread: RunInThread,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: Whether only brokers write to it.
        self.is_internal = is_internal(topic_partition.topic)
        self.log = log
        self.rules = rules
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.leader = -1
        self.leader_epoch = -1
        self.is_leader = False
        self._node_id = node_id
        self._events = events
        self._write_failures = write_failures
        self._run_in_thread = run_in_thread
        self._turns = AppendTurns()
        self.transaction_turns = TransactionTurns()
        self._fsyncs = FsyncRounds(log, run_in_thread, lambda: events.on_durable(self))
        #: Plain counters, which metrics read when somebody asks.
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self.apply(image)

    def apply(self, image: PartitionImage) -> None:
        """Take the role that the controller gives this broker."""
        self.replicas = image.replicas
        self.isr = image.isr
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.is_leader = image.leader == self._node_id
        if self.is_leader:
            self._advance_high_watermark()

    # -- offsets ---------------------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset

    @property
    def low_watermark(self) -> int:
        """The smallest log start of the live replicas: nobody serves what lies in front of it."""
        return self.log.log_start_offset

    @property
    def fsync_rounds(self) -> int:
        """How many shared fsyncs there were."""
        return self._fsyncs.count

    def _advance_high_watermark(self) -> None:
        log = self.log
        if self.isr == (self._node_id,) and log.log_end_offset > log.high_watermark:
            log.advance_high_watermark(log.log_end_offset)
            self._events.on_high_watermark(self)

    @property
    def min_insync_replicas(self) -> int:
        """How many must be in sync for acks=all: as the topic says, but no more than there are."""
        return min(self.rules.min_insync_replicas, len(self.replicas))

    # -- leadership ------------------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch that the client knows."""
        if current_leader_epoch not in (NO_LEADER_EPOCH, self.leader_epoch):
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(
                    ErrorCode.FENCED_LEADER_EPOCH,
                    f"{self.topic_partition} has leader epoch {self.leader_epoch}, "
                    f"and {current_leader_epoch} is over.",
                )
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{self.topic_partition} has leader epoch {self.leader_epoch} here, "
                f"and {current_leader_epoch} is not known yet.",
            )
        if not self.is_leader:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic_partition} is led by broker {self.leader}.",
            )

    # -- appending -------------------------------------------------------------------------------

    def append(
        self,
        batches: Buffer | PreparedBatches,
        *,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        """Write batches to the leader's log. Whether they are safe yet is asked afterwards."""
        if not self.is_leader:
            self.check_leader()
        if acks == ACKS_ALL and len(self.isr) < self.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic_partition} has {len(self.isr)} in-sync replicas, "
                f"and {self.min_insync_replicas} are needed.",
            )
        try:
            result = self.log.append_as_leader(
                batches, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
            )
        except LogStorageError as error:
            self._write_failures.failed(self.log, error)
            raise
        if self._write_failures.directories:
            self._write_failures.succeeded(self.log)
        if not result.is_duplicate:
            self.bytes_in += len(batches[0] if isinstance(batches, PreparedBatches) else batches)
            self.messages_in += result.last_offset - result.base_offset + 1
        self._advance_high_watermark()
        return result

    def append_plain(self, batch: memoryview, *, acks: int, now_ms: int) -> int | None:
        """Write one ordinary batch and return its offset; None, and nothing done, if it is not one.

        A short way for nearly all appends; what it does not take goes through `append`.
        """
        if (
            not self.is_leader
            or self._turns.is_busy
            or (acks == ACKS_ALL and len(self.isr) < self.min_insync_replicas)
        ):
            return None
        log = self.log
        try:
            base_offset = append_plain_batch(log, batch, self.leader_epoch, now_ms)
        except LogStorageError as error:
            self._write_failures.failed(log, error)
            raise
        if base_offset is not None:
            if self._write_failures.directories:
                self._write_failures.succeeded(log)
            self.bytes_in += len(batch)
            self.messages_in += log.log_end_offset - base_offset
            self._advance_high_watermark()
        return base_offset

    def must_prepare(self, records: Buffer) -> bool:
        """Whether an append has to be prepared in a thread, or wait for one that is."""
        return self._turns.is_busy or (
            self.log.config.inspects_records and len(records) > INSPECTED_INLINE_BYTES_MAX
        )

    def take_turn(self) -> AppendTurn:
        """A place in the order of appends, for one that is prepared in a thread."""
        return self._turns.take()

    async def prepare(self, records: Buffer, now_ms: int) -> PreparedBatches:
        """Look into the records in a thread; raises what an append of them would."""
        config = self.log.config
        prepared: list[PreparedBatches] = []
        await self._run_in_thread(
            lambda: prepared.append(prepare_batches(records, config, now_ms, AppendOrigin.CLIENT))
        )
        return prepared[0]

    def needs_fsync(self, acks: int) -> bool:
        """Whether an append of just now may be acknowledged only when it is on disk."""
        if acks == ACKS_ALL:
            flush = self.rules.acks_all_flush
            if flush is AcksAllFlush.LEADER or (flush is AcksAllFlush.AUTO and len(self.isr) <= 1):
                return True
        log = self.log
        return log.config.flush_messages != LONG_MAX and must_flush(log)

    def is_acknowledged(self, end_offset: int, *, durably: bool) -> bool:
        """Whether all in front of `end_offset` is safe; raises if it cannot become so any more."""
        log = self.log
        if log.failure is not None:
            raise log.failure
        if log.high_watermark < end_offset:
            self.check_leader()
            return False
        if durably and log.flushed_offset < end_offset:
            return False
        if len(self.isr) < self.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"{self.topic_partition} has {len(self.isr)} in-sync replicas left, "
                f"and {self.min_insync_replicas} are needed.",
            )
        return True

    # -- durability ------------------------------------------------------------------------------

    def request_fsync(self, end_offset: int) -> None:
        """See to it that all in front of `end_offset` becomes durable; `on_durable` tells when."""
        self._fsyncs.request(end_offset)

    def replace_log(self, log: PartitionLog) -> None:
        """The log has moved to another directory, where it is durable to its end."""
        self.log = log
        self._fsyncs.replace_log(log)

    async def close(self) -> None:
        """Wait for an fsync under way."""
        await self._fsyncs.close()

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed_only: bool = False,
        min_one_batch: bool = False,
    ) -> PartitionRead:
        """Batches from the one that holds `offset`, as far as a consumer may see them."""
        log = self.log
        high_watermark = log.high_watermark
        stable = log.last_stable_offset
        upper = stable if committed_only else high_watermark
        read = log.read(offset, max_bytes, upper_offset=upper, min_one_batch=min_one_batch)
        aborted = None
        if committed_only:
            aborted = log.aborted_transactions(offset, read.upper_offset) if read.size > 0 else ()
        return PartitionRead(read, high_watermark, stable, log.log_start_offset, aborted)

    def delete_records(self, offset: int) -> int:
        """Hide all records in front of `offset` (-1: the high watermark); returns the new start."""
        self.check_leader()
        target = self.high_watermark if offset == -1 else offset
        if target < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} has no offset {offset} to delete records before.",
            )
        return delete_records_before(self.log, target)

    def end_offset_for(self, leader_epoch: int) -> EpochEndOffset:
        """The largest epoch up to `leader_epoch` that wrote here, and where it ended."""
        if leader_epoch == self.leader_epoch:
            return EpochEndOffset(leader_epoch, self.log_end_offset)
        return self.log.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)
