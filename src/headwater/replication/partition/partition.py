"""One partition as this broker sees it: its role, its replicas, and how far it is replicated.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset (LEO)

The leader takes appends and serves reads; consumers may read from followers too. Its high watermark
is the smallest LEO among the in-sync replicas (ISR): what lies in front of it survives the leader,
and consumers see nothing behind it. What it knows of its followers is in its `leadership`; a
partition that has no other replica has none. A follower's log is written by its fetcher, which
tells here how far the leader is.

Roles come from the controller alone. `leader_epoch` counts the leaders; a request that names
another epoch than the current one comes from somebody who missed an election, or heard of one
before this broker did. `partition_epoch` counts all changes of the partition's state, and an image
with an older one is ignored. Who is in sync, in which partition epoch, is the leader's to know: it
proposes changes, and may hear of their outcome before the image tells. So it is kept by the
`leadership` while there is one, and is what the controller said last where there is none.

Two things make an append safe enough to acknowledge with acks=all: that the high watermark has
passed it, and, where `acks.all.flush` asks for it, that it is on this broker's disk. The latter is
a *shared fsync*: appends that wait while one runs are covered by the next, however many they are.

The owner is the broker's event loop. Who waits for a partition is told through `PartitionEvents`.
"""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import PartitionImage, is_brokers_own
from headwater.replication.leading.leadership import Leadership
from headwater.replication.leading.resignation import Resignation
from headwater.replication.partition.append_turns import AppendTurn, AppendTurns, TransactionTurns
from headwater.replication.partition.deliveries import Deliveries
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.fsync_rounds import FsyncRounds
from headwater.replication.partition.options import ACKS_ALL, AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition_read import NOT_DELAYED
from headwater.storage.append.leader import (
    DECOMPRESSED_INLINE_BYTES_MAX,
    PreparedBatches,
    prepare_batches,
    takes_long,
)
from headwater.storage.append.plain import append_plain_batch
from headwater.storage.directories.maintenance import must_flush
from headwater.storage.errors import LogStorageError, OutOfOrderSequenceError
from headwater.storage.leader_epochs import UNDEFINED_EPOCH, EpochEndOffset
from headwater.storage.log_config import LONG_MAX
from headwater.storage.partition_log import AppendResult, PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.retention import delete_records_before
from headwater.wire.records import Buffer, DecompressedTooLargeError

#: A request that names no leader epoch.
NO_LEADER_EPOCH = -1
#: Before the controller has given a role.
NOTHING_TOLD = PartitionImage((), (), -1, -1, -1)


class Partition:
    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        log: PartitionLog,
        image: PartitionImage,
        *,
        options: PartitionOptions,
        environment: PartitionEnvironment,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: Whether only brokers write to it.
        self.is_brokers_own = is_brokers_own(topic_partition.topic)
        self.log = log
        self.options = options
        self.replicas: tuple[int, ...] = ()
        self.leader = -1
        self.leader_epoch = -1
        #: What the controller said last; a leader may have heard more since, by `leadership`.
        self._told = NOTHING_TOLD
        self.is_leader = False
        #: Where this leader's log ended when its epoch began; what comes behind is its own.
        self.leader_epoch_start_offset = 0
        #: Set while this broker leads and others have replicas too.
        self.leadership: Leadership | None = None
        #: Whether this broker leads, and nobody else has a replica: the one case of short ways.
        self._is_sole_replica = False
        #: How many replicas it is to have: while it moves, as many as it had before.
        self.replica_count = 0
        #: Set while this broker follows with a log that has failed, and is in sync nevertheless.
        self._resignation: Resignation | None = None
        #: Who delivers what waits in it, if it takes delays.
        self.deliveries: Deliveries | None = None
        #: Whether it was deleted here; then its log is gone too.
        self.is_removed = False
        self._environment = environment
        self._node_id = environment.node_id
        self._events = environment.events
        self.write_failures = environment.write_failures
        self._turns = AppendTurns()
        self.transaction_turns = TransactionTurns()
        self._fsyncs = FsyncRounds(
            log, environment.run_in_thread, environment.tasks, self._on_durable
        )
        #: Plain counters, which metrics read when somebody asks.
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        #: Records that were sent again and refused, and batches that came with a gap in front.
        self.duplicates_refused = 0
        self.gaps_refused = 0
        #: Clients by their producers' ids, as far as they are known; None if nobody asks.
        self.client_ids: dict[int, str] | None = None
        self._take_role(image)

    # -- the role --------------------------------------------------------------------------------

    def apply(self, image: PartitionImage) -> None:
        """Take the role that the controller gives this broker, unless a later one is known."""
        if image.leader_epoch < self.leader_epoch or image.partition_epoch < self.partition_epoch:
            return
        is_same_state = (
            image.partition_epoch == self.partition_epoch
            and image.leader_epoch == self.leader_epoch
            and image.leader == self.leader
            and image.replicas == self.replicas
        )
        if is_same_state:
            return  # What is proposed to the controller meanwhile stays open.
        has_new_role = image.leader != self.leader or image.leader_epoch != self.leader_epoch
        has_new_isr = image.isr != self.isr
        self._take_role(image)
        if has_new_role:
            self._events.on_role(self)
        elif has_new_isr:
            self._events.on_in_sync(self)

    def _take_role(self, image: PartitionImage) -> None:
        is_leader = image.leader == self._node_id
        is_new_epoch = image.leader_epoch != self.leader_epoch or is_leader != self.is_leader
        self._told = image
        self.replicas = image.replicas
        self.replica_count = len(image.replicas) - len(image.adding)
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.is_leader = is_leader
        self._is_sole_replica = is_leader and image.replicas == (self._node_id,)
        if is_leader and is_new_epoch:
            self.leader_epoch_start_offset = self.log.log_end_offset
        if is_leader and not self._is_sole_replica:
            if self.leadership is None:
                self.leadership = Leadership(self, self._environment)
            self.leadership.follow(image, is_new_epoch=is_new_epoch)
        else:
            self.leadership = None
        if self._resignation is not None:
            self._resignation.withdraw()
            self._resignation = None
        if self.deliveries is not None:
            self.deliveries.wake()
        if is_leader:
            self.advance_high_watermark()
        elif self.log.failure is not None:
            self._leave_isr_if_failed()
        self._environment.throttles.take_note(self)

    def take_options(self, options: PartitionOptions) -> None:
        """The settings that it follows have changed."""
        self.options = options
        # The high watermark may have waited for more replicas than are needed now.
        self.advance_high_watermark()
        self._environment.throttles.take_note(self)

    def remove(self) -> None:
        """The partition goes from this broker; whoever waits for it is told by events."""
        self.is_removed = True
        self.is_leader = self._is_sole_replica = False
        self.leadership = None
        self._environment.throttles.forget(self)

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
        if self.leadership is not None:
            return self.leadership.low_watermark
        return self.log.log_start_offset

    @property
    def fsync_rounds(self) -> int:
        """How many shared fsyncs there were."""
        return self._fsyncs.count

    def advance_high_watermark(self) -> None:
        """Raise it to what all replicas of the ISR have, as far as this broker leads."""
        if self.leadership is not None:
            self.leadership.advance_high_watermark()
            return
        log = self.log
        if self._is_sole_replica and log.log_end_offset > log.high_watermark:
            log.raise_high_watermark(log.log_end_offset)
            self._events.on_high_watermark(self)

    def shows_more(self) -> None:
        """Consumers may read further, though the log has not changed."""
        self._events.on_high_watermark(self)

    def _has_grown(self) -> None:
        """After an append: all that there is to tell about it."""
        if self.deliveries is not None:
            self.deliveries.wake()
        self.advance_high_watermark()
        if self.leadership is not None:
            self._events.on_append(self)

    # -- in-sync replicas ------------------------------------------------------------------------

    @property
    def isr(self) -> tuple[int, ...]:
        leadership = self.leadership
        return self._told.isr if leadership is None else leadership.in_sync.state.isr

    @property
    def partition_epoch(self) -> int:
        leadership = self.leadership
        if leadership is None:
            return self._told.partition_epoch
        return leadership.in_sync.state.partition_epoch

    @property
    def told(self) -> PartitionImage:
        """What the controller said last."""
        return self._told

    @property
    def is_in_sync(self) -> bool:
        """Whether this broker's replica is, as far as is known here."""
        return self._node_id in self.isr

    @property
    def is_being_added(self) -> bool:
        """Whether the partition is on its way to this broker."""
        return self._node_id in self._told.adding

    @property
    def is_alone(self) -> bool:
        """Whether nobody else is in sync, or may be so any moment: then this disk has to answer."""
        leadership = self.leadership
        return len(self._told.isr) <= 1 if leadership is None else leadership.in_sync.state.is_alone

    @property
    def min_insync_replicas(self) -> int:
        """How many must be in sync for acks=all: as the topic says, but no more than there are.

        Replicas that a move is adding do not count before it ends: until then neither fewer nor
        more are needed than before.
        """
        return min(self.options.min_insync_replicas, self.replica_count)

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether acks=all may be acknowledged; a sole replica is all that there can be."""
        return self._is_sole_replica or len(self.isr) >= self.min_insync_replicas

    # -- leadership ------------------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Raise unless this broker leads the partition in the epoch that the client knows."""
        if current_leader_epoch not in (NO_LEADER_EPOCH, self.leader_epoch):
            raise self._another_epoch(current_leader_epoch)
        if not self.is_leader:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic_partition} is led by broker {self.leader}.",
            )

    def check_replica(self, current_leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Raise unless this broker has a replica, and knows the epoch that the client knows."""
        if current_leader_epoch not in (NO_LEADER_EPOCH, self.leader_epoch):
            raise self._another_epoch(current_leader_epoch)
        if self.is_removed:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic_partition} has no replica here any more.",
            )

    def _another_epoch(self, current_leader_epoch: int) -> KafkaError:
        if current_leader_epoch < self.leader_epoch:
            return KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self.topic_partition} has leader epoch {self.leader_epoch}, "
                f"and {current_leader_epoch} is over.",
            )
        return KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{self.topic_partition} has leader epoch {self.leader_epoch} here, "
            f"and {current_leader_epoch} is not known yet.",
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
        if acks == ACKS_ALL and not self.has_enough_in_sync:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic_partition} has {len(self.isr)} in-sync replicas, "
                f"and {self.min_insync_replicas} are needed.",
            )
        if self.write_failures.directories:
            self.write_failures.check_room(self.log)
        try:
            result = self.log.append_as_leader(
                batches, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
            )
        except LogStorageError as error:
            self._write_failed(error)
            raise
        except OutOfOrderSequenceError:
            self.gaps_refused += 1
            raise
        if self.write_failures.directories:
            self.write_failures.succeeded(self.log)
        if result.is_duplicate:
            self.duplicates_refused += result.last_offset - result.base_offset + 1
        else:
            self.bytes_in += len(batches[0] if isinstance(batches, PreparedBatches) else batches)
            self.messages_in += result.last_offset - result.base_offset + 1
        self._has_grown()
        return result

    def append_plain(self, batch: memoryview, *, acks: int, now_ms: int) -> int | None:
        """Write one ordinary batch and return its offset; None, and nothing done, if it is not one.

        A short way for nearly all appends; what it does not take goes through `append`.
        """
        if (
            not self.is_leader
            or self._turns.is_busy
            or (acks == ACKS_ALL and not self.has_enough_in_sync)
        ):
            return None
        log = self.log
        if self.write_failures.directories:
            self.write_failures.check_room(log)
        try:
            base_offset = append_plain_batch(log, batch, self.leader_epoch, now_ms)
        except LogStorageError as error:
            self._write_failed(error)
            raise
        if base_offset is not None:
            if self.write_failures.directories:
                self.write_failures.succeeded(log)
            self.bytes_in += len(batch)
            self.messages_in += log.log_end_offset - base_offset
            if self._is_sole_replica:
                log.raise_high_watermark(log.log_end_offset)
                self._events.on_high_watermark(self)
            else:
                self._has_grown()
        return base_offset

    def _write_failed(self, error: LogStorageError) -> None:
        self.write_failures.failed(self.log, error)
        if self.leadership is not None and self.log.failure is not None:
            self.leadership.in_sync.resign()

    def prepare_at_once(self, records: Buffer, now_ms: int) -> Buffer | PreparedBatches | None:
        """What to append now; None if it takes a thread to prepare it, or waits for one that does.

        How much a compressed batch holds is not known before it is decompressed, so that is tried.
        """
        config = self.log.config
        if self._turns.is_busy:
            return None
        if not self.is_leader:
            return records
        if takes_long(records, config):
            return None
        if not config.inspects_records:
            return records
        try:
            return prepare_batches(
                records,
                config,
                now_ms,
                AppendOrigin.CLIENT,
                self.topic_partition,
                max_decompressed_bytes=DECOMPRESSED_INLINE_BYTES_MAX,
            )
        except DecompressedTooLargeError:
            return None

    def take_turn(self) -> AppendTurn:
        """A place in the order of appends, for one that is prepared in a thread."""
        return self._turns.take()

    async def prepare(self, records: Buffer, now_ms: int) -> PreparedBatches:
        """Look into the records in a thread; raises what an append of them would."""
        return await self._environment.inspections.prepare(
            records, self.log.config, now_ms, self.topic_partition
        )

    @property
    def fsyncs_when_alone(self) -> bool:
        """Whether acks=all waits for the disk while only this broker is in sync."""
        return self.options.acks_all_flush is not AcksAllFlush.OFF

    def needs_fsync(self, acks: int) -> bool:
        """Whether an append of just now may be acknowledged only when it is on disk."""
        if acks == ACKS_ALL:
            flush = self.options.acks_all_flush
            if flush is AcksAllFlush.LEADER or (flush is AcksAllFlush.AUTO and self.is_alone):
                return True
        log = self.log
        return log.config.flush_messages != LONG_MAX and must_flush(log)

    def is_safe_at_once(self, end_offset: int, acks: int) -> bool:
        """Whether nothing is to be waited for after an append of just now."""
        if self.needs_fsync(acks):
            return False
        return acks != ACKS_ALL or self.log.high_watermark >= end_offset

    def is_acknowledged(self, end_offset: int, *, durably: bool, replicated: bool = True) -> bool:
        """Whether all in front of `end_offset` is safe; raises if it cannot become so any more.

        `replicated` stands for acks=all: the in-sync replicas must have it too.
        """
        log = self.log
        if log.failure is not None:
            raise log.failure
        if not self.is_leader:
            # Even if the high watermark has passed it: another leader may have other records there.
            self.check_leader()
        if replicated:
            if log.high_watermark < end_offset:
                # Also while too few replicas are in sync: they may come back in time. An error
                # would say of what is written that it may not be, and librdkafka then writes it
                # twice if the batch behind it is refused and the next one comes when they are back.
                return False
            if not self.has_enough_in_sync:
                raise KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                    f"{self.topic_partition} has {len(self.isr)} in-sync replicas left, "
                    f"and {self.min_insync_replicas} are needed.",
                )
            if not durably and self.is_alone and self.fsyncs_when_alone:
                # It was appended when others were in sync too, who did not all get it.
                durably = True
                if log.flushed_offset < end_offset:
                    self.request_fsync(end_offset)
        return not durably or log.flushed_offset >= end_offset

    # -- durability ------------------------------------------------------------------------------

    def request_fsync(self, end_offset: int) -> None:
        """See to it that all in front of `end_offset` becomes durable; `on_durable` tells when."""
        self._fsyncs.request(end_offset)

    def replace_log(self, log: PartitionLog) -> None:
        """The log has moved to another directory, where it is durable to its end."""
        self.log = log
        self._fsyncs.replace_log(log)
        if self.deliveries is not None:
            self.deliveries.log_replaced()

    def _on_durable(self) -> None:
        if self.leadership is not None:
            self.leadership.in_sync.log_is_durable()
        self._events.on_durable(self)

    async def close(self) -> None:
        """Wait for an fsync under way."""
        await self._fsyncs.close()

    # -- records and epochs ----------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Hide all records in front of `offset` (-1: the high watermark); returns the new start."""
        self.check_leader()
        target = self.high_watermark if offset == -1 else offset
        if target < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} has no offset {offset} to delete records before.",
            )
        log_start_offset = delete_records_before(self.log, target)
        if self.deliveries is not None:
            self.deliveries.log_start_raised()
        self._events.on_log_start(self)
        return log_start_offset

    def end_offset_for(self, leader_epoch: int) -> EpochEndOffset:
        """The largest epoch up to `leader_epoch` that wrote here, and where it ended."""
        if leader_epoch == self.leader_epoch:
            return EpochEndOffset(leader_epoch, self.log_end_offset)
        epochs = self.log.leader_epochs
        latest = epochs.latest_epoch
        known = UNDEFINED_EPOCH if latest is None else latest
        if self.is_leader and max(known, 0) <= leader_epoch < self.leader_epoch:
            # This leader's own epoch has begun, though nothing was written in it yet.
            epoch = leader_epoch if latest is None else latest
            return EpochEndOffset(epoch, self.leader_epoch_start_offset)
        return epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # -- following -------------------------------------------------------------------------------

    def follower_appended(
        self,
        size_bytes: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
        leader_shown_end: int = NOT_DELAYED,
    ) -> None:
        """Its fetcher has written so many bytes, and knows how far the leader is."""
        log = self.log
        self.replication_bytes_in += size_bytes
        before = log.high_watermark
        if leader_high_watermark > before:
            log.raise_high_watermark(leader_high_watermark)
        log.raise_log_start(min(leader_log_start_offset, log.log_end_offset))
        shows_more = leader_shown_end >= 0 and log.raise_shown_end(leader_shown_end)
        if log.high_watermark > before or shows_more:
            # Consumers may read here too, after a fixed delay if that is how the topic is.
            if log.shown_end is not None and self.deliveries is not None:
                self.deliveries.wake()
            self._events.on_high_watermark(self)

    def follower_truncated(self) -> None:
        """Its fetcher has cut the log back: what is to be durable lies further in front now."""
        self._fsyncs.truncated()
        if self.deliveries is not None:
            self.deliveries.truncated()

    def storage_failed(self, error: LogStorageError) -> None:
        """Its fetcher could not write: the operator is told, once for the directory."""
        self.write_failures.failed(self.log, error)
        self._leave_isr_if_failed()

    def _leave_isr_if_failed(self) -> None:
        """A follower that cannot write any more must not be waited for."""
        if self.log.failure is not None and not self.is_leader and self._node_id in self.isr:
            self._resignation = Resignation(
                self.topic_partition, self.topic_id, self._told, self._environment
            )
