"""One partition's log: segments in a directory, behind one append-only interface.

Offsets, from the start:

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset

`log_start_offset` rises with retention and DeleteRecords. `high_watermark` is set by replication,
which alone knows how far the in-sync replicas are; the log needs it to know what readers and
retention may touch. `last_stable_offset` is the high watermark, or the start of the oldest
transaction that is still open, if that comes first. `flushed_offset` and `recovery_point` are about
disks, see `flush`.

The log has one owner, the broker's event loop, and no locks: nothing here waits for a disk but
appends to the page cache. An append is all or nothing: if the disk refuses a part of it, the file
is cut back and the caller gets `LogStorageError`; if even that fails, the log takes no more writes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.storage.append.delay_admission import check_admission
from headwater.storage.append.delaying import not_due_before
from headwater.storage.append.follower import append_batches
from headwater.storage.append.forgotten_batches import recall_batches
from headwater.storage.append.leader import (
    PreparedBatches,
    assign_offsets,
    changeable,
    prepare_batches,
)
from headwater.storage.append.unwritten_batches import UnwrittenBatches
from headwater.storage.breaker import Breaker
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import (
    DelayedLaterError,
    ExhaustionError,
    LogStorageError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    is_exhaustion,
)
from headwater.storage.flush import Durability, FlushPlan
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.leader_epochs import LeaderEpochs
from headwater.storage.log_config import LogConfig
from headwater.storage.log_reads import (
    LogRead,
    find_aborted,
    find_max_timestamp,
    find_timestamp,
    read_record_segments,
    read_segments,
    read_visible_segments,
)
from headwater.storage.producers.entry import AppendedBatch, AppendOrigin, BatchMetadata
from headwater.storage.producers.open_transactions import CompletedTransaction
from headwater.storage.producers.replay import replay_log
from headwater.storage.producers.state import PendingAppend, ProducerStates
from headwater.storage.segments.retired_files import RetiredFiles
from headwater.storage.segments.roll import roll_log
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_list import SegmentList, UnfinishedChange
from headwater.storage.visible_reads import visible_end
from headwater.storage.waiting_messages import WaitingMessages
from headwater.wire.records import (
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    TimestampType,
    read_batch_header,
)


class AppendResult(NamedTuple):
    """Where an append went; for a batch that was written before, where it went then."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool = False


class PartitionLog:
    def __init__(
        self,
        partition: TopicPartition,
        directory: str,
        config: LogConfig,
        *,
        files: FileSystem,
        handles: HandleCache,
        segments: SegmentList,
        producer_states: ProducerStates,
        leader_epochs: LeaderEpochs,
        log_start_offset: int,
        flushed_offset: int,
        random_source: random.Random,
        keep_recovery_point: Callable[[int], None],
        keep_log_start: Callable[[int], None],
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.config = config
        self.files = files
        self.handles = handles
        self.segments = segments
        self.producer_states = producer_states
        self.unwritten = UnwrittenBatches()
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = segments.active.next_offset
        self.high_watermark = log_start_offset
        self.durability = Durability(files, directory, flushed_offset)
        self.retired = RetiredFiles(files)
        self.failure: LogStorageError | None = None
        #: Where consumers' sight ends, if everything is shown to them later.
        self.shown_end: int | None = None
        #: What waits for its delivery; None where nobody delivers.
        self.waiting: WaitingMessages | None = None
        #: Of a retry topic's, once its leader knows all that waits.
        self.breaker: Breaker | None = None
        #: A swap of compacted segments that is under way: see `segment_swap`.
        self.unfinished: UnfinishedChange | None = None
        #: Called around a truncation with the recovery point that must survive a crash.
        self.keep_recovery_point = keep_recovery_point
        #: Called before segments are dropped with the log start that must survive a crash.
        self.keep_log_start = keep_log_start
        self._random = random_source

    # -- appending -------------------------------------------------------------------------------

    def append_as_leader(
        self,
        batches: Buffer | PreparedBatches,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        """Check batches, give them offsets and write them. A `bytearray` is patched in place."""
        self._check_usable()
        config = self.config
        if not isinstance(batches, PreparedBatches):
            batches = prepare_batches(batches, config, now_ms, origin, self.partition)
        data, headers = batches
        if not headers:
            return AppendResult(self.log_end_offset, self.log_end_offset - 1, NO_TIMESTAMP)
        if headers[0].is_delayed:
            data, headers = self._not_due_too_early(data, headers)
        data = changeable(data)
        headers = assign_offsets(data, headers, self.log_end_offset, leader_epoch, config, now_ms)
        duplicate = self.write(data, headers, origin, now_ms)
        append_time_ms = NO_TIMESTAMP
        if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_time_ms = now_ms
        if duplicate is not None:
            return AppendResult(
                duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, True
            )
        return AppendResult(headers[0].base_offset, self.log_end_offset - 1, append_time_ms)

    def _not_due_too_early(self, data: Buffer, headers: list[BatchHeader]) -> PreparedBatches:
        """A delayed batch as it may be written now: nothing of it sorts before deliveries."""
        header = headers[0]
        delivered_until_ms = self.producer_states.delivered_until_ms
        # None of its records is due before it was prepared.
        if header.max_timestamp < delivered_until_ms:
            later = not_due_before(data, header, delivered_until_ms)
            if later is not None:
                return PreparedBatches(later, [read_batch_header(later)])
        return PreparedBatches(data, headers)

    def append_as_follower(
        self, data: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> int:
        """Write a leader's batches with the offsets and epochs that they carry.

        Returns how many bytes were written: a batch that is cut short is left out, and so is all
        that a later leader than that of `leader_epoch` wrote. See `append.follower`.
        """
        self._check_usable()
        return append_batches(self, data, leader_epoch, now_ms)

    def write(
        self, data: Buffer, headers: Sequence[BatchHeader], origin: AppendOrigin, now_ms: int
    ) -> BatchMetadata | None:
        """The common half of all appends; returns the earlier batch that this one repeats."""
        unwritten = self.unwritten.first_sequences  # Nearly always empty.
        if unwritten and origin is AppendOrigin.CLIENT:
            self.unwritten.check(headers, self.partition)
        pending = self._prepare(data, headers, origin)
        if pending is not None and pending.duplicate is not None:
            return pending.duplicate
        try:
            if origin is AppendOrigin.CLIENT and headers[0].is_delayed:
                check_admission(self, data, headers[0], now_ms)
            self._assign_epochs(headers)
            segment = self._segment_for(headers, len(data), now_ms)
            self.write_to(segment, data, headers)
        except (LogStorageError, DelayedLaterError):
            if origin is AppendOrigin.CLIENT:
                self.unwritten.refused(headers, self.producer_states)
            raise
        if unwritten:
            self.unwritten.written(headers)
        if pending is None:
            self.producer_states.end_offset = self.log_end_offset
        else:
            self.producer_states.apply(pending)
            self._complete_transactions(segment, pending.completed)
        return None

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        if len(headers) == 1 and self.leader_epochs.is_running(headers[0].leader_epoch):
            return
        try:
            for header in headers:
                if header.leader_epoch >= 0:
                    self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            self.leader_epochs.flush()
        except OSError as error:
            raise LogStorageError(
                f"{self.partition} could not note its leader epoch: {error.strerror}."
            ) from error

    def _prepare(
        self, data: Buffer, headers: Sequence[BatchHeader], origin: AppendOrigin
    ) -> PendingAppend | None:
        """What an append does to the producer states; None if no batch has a producer."""
        if headers[0].producer_id < 0 and (
            len(headers) == 1 or all(header.producer_id < 0 for header in headers)
        ):
            return None
        batches = AppendedBatch.read_all(headers, data)
        try:
            return self.producer_states.prepare(batches, origin=origin)
        except OutOfOrderSequenceError:
            recall_batches(self, headers[0])  # A client's append has one batch.
        return self.producer_states.prepare(batches, origin=origin)

    def write_to(self, segment: LogSegment, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write to the active segment, all or nothing; for the appends alone."""
        position = segment.size_bytes
        try:
            segment.append(data, headers)
        except OSError as error:
            try:
                segment.cut(position)
                segment.log.sync()  # Or a power loss could bring back what was refused.
            except OSError as second:
                raise self.fail(second) from error
            raise LogStorageError(
                f"{self.partition} could not be written: {error.strerror}."
            ) from error
        self.log_end_offset = headers[-1].next_offset

    def _complete_transactions(
        self, segment: LogSegment, completed: Sequence[CompletedTransaction]
    ) -> None:
        """The index learns of an abort before the last stable offset can move past it."""
        for transaction in completed:
            if transaction.is_aborted:
                stable = self.producer_states.last_stable_offset(transaction)
                try:
                    segment.add_aborted(transaction, stable)
                except OSError as error:
                    raise self.fail(error) from error
            self.producer_states.complete_transaction(transaction)

    def _segment_for(self, headers: Sequence[BatchHeader], size: int, now_ms: int) -> LogSegment:
        """The active segment, or a new one if the batches call for it."""
        max_timestamp = headers[0].max_timestamp
        if len(headers) > 1:
            max_timestamp = max(header.max_timestamp for header in headers)
        active = self.segments.active
        if active.should_roll(size, headers[-1].last_offset, max_timestamp, now_ms, self.config):
            # A leader's batch may lie so far behind a compacted stretch that only a segment of
            # its own can hold it.
            far = headers[-1].last_offset - active.next_offset > RELATIVE_OFFSET_MAX
            return self.roll(now_ms, headers[0].base_offset if far else None)
        return active

    def roll(self, now_ms: int, base_offset: int | None = None) -> LogSegment:
        """Seal the active segment and start another: see `roll`."""
        return roll_log(self, now_ms, base_offset)

    def new_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        jitter_max_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment = LogSegment(
            self.files,
            self.handles,
            self.directory,
            base_offset,
            self.config,
            created_ms=now_ms,
            roll_jitter_ms=self._random.randrange(jitter_max_ms) if jitter_max_ms > 0 else 0,
        )
        self.durability.directory_changed()
        return segment

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper_offset: int | None = None,
        min_one_batch: bool = False,
    ) -> LogRead:
        """A stretch of the log from the batch that holds `offset`, below `upper_offset`.

        Batches are not counted out: the stretch is `max_bytes` long or ends where the readable part
        of its segment does. If already the first batch is larger, there is nothing, or with
        `min_one_batch` this batch.
        """
        self.check_in_range(offset)
        end = self.log_end_offset
        upper = end if upper_offset is None or upper_offset > end else upper_offset
        return read_segments(self.segments, offset, max_bytes, upper, min_one_batch)

    def read_records(
        self, offset: int, max_bytes: int, *, upper_offset: int, min_one_batch: bool = False
    ) -> LogRead:
        """The same for a consumer: hidden batches and those that compaction emptied are left out.

        So it may begin behind `offset`, and end where such a batch stands. Where all batches below
        `upper_offset` are hidden there is nothing. If there are only emptied ones, it is the last
        of them: what a consumer needs to know then is that it has reached the end.
        """
        self.check_in_range(offset)
        upper = min(upper_offset, self.log_end_offset)
        has_hidden = self.segments.has_hidden
        if self.has_hidden:
            upper = self.visible_end(upper)
        if self.has_hidden and not self.config.is_compacted:
            return read_visible_segments(self.segments, offset, max_bytes, upper, min_one_batch)
        return read_record_segments(
            self.segments, offset, max_bytes, upper, min_one_batch, has_hidden=has_hidden
        )

    def check_in_range(self, offset: int) -> None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(
                f"{self.partition} holds offsets {self.log_start_offset} to {self.log_end_offset}, "
                f"not {offset}."
            )

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader of [offset, upper_offset) must leave out."""
        return find_aborted(self.segments, offset, upper_offset)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is not older than `timestamp`."""
        bound = self.config.max_decompressed_message_bytes
        return find_timestamp(self.segments, timestamp, self.log_start_offset, bound)

    def max_timestamp(self, upper_offset: int | None = None) -> TimestampOffset | None:
        """The first record with the largest timestamp of all that can be read."""
        bound = self.config.max_decompressed_message_bytes
        upper = self.log_end_offset if upper_offset is None else upper_offset
        return find_max_timestamp(self.segments, self.log_start_offset, upper, bound)

    # -- offsets ---------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        unstable = self.producer_states.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def has_hidden(self) -> bool:
        """Whether there may be batches that consumers do not see, or do not see yet."""
        return self.segments.has_hidden or self.shown_end is not None

    def visible_end(self, upper_offset: int) -> int:
        """Where a consumer is at the end, who may read what is in front of `upper_offset`.

        That is the end of the last batch that it sees. It goes back only where `upper_offset` does
        or where compaction has removed that batch.
        """
        if self.shown_end is not None:
            upper_offset = min(upper_offset, max(self.shown_end, self.log_start_offset))
        if not self.segments.has_hidden:
            return upper_offset
        return max(visible_end(self.segments, upper_offset), self.log_start_offset)

    @property
    def visible_high_watermark(self) -> int:
        """The high watermark as consumers are told."""
        return self.visible_end(self.high_watermark)

    @property
    def visible_stable_offset(self) -> int:
        """The last stable offset as consumers are told."""
        return self.visible_end(self.last_stable_offset)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def record_end_offset(self) -> int:
        """One past the last record; the log's end may be further on after a truncation."""
        return self.segments.active.next_offset

    @property
    def flushed_offset(self) -> int:
        return self.durability.flushed_offset

    @property
    def recovery_point(self) -> int:
        return self.durability.recovery_point

    # -- the only ones who move the log's offsets, besides `write_to` ------------------------------

    def raise_high_watermark(self, offset: int) -> None:
        """Replication says that all in front of `offset` is in every in-sync replica."""
        if offset > self.high_watermark:
            self.high_watermark = min(offset, self.log_end_offset)
            self.producer_states.on_high_watermark(self.high_watermark)

    def raise_shown_end(self, offset: int) -> bool:
        """The leader has shown consumers all in front of `offset`; whether that is news here."""
        before = self.shown_end
        if before is not None and before < offset:
            self.shown_end = max(before, min(offset, self.log_end_offset))
        return self.shown_end != before

    def raise_log_start(self, offset: int) -> None:
        """Records in front of `offset` are deleted, and nobody reads them any more."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.high_watermark = max(self.high_watermark, offset)
            self.producer_states.on_log_start(offset)

    def end_at(self, offset: int) -> None:
        """A truncation has cut off what was at or behind `offset`."""
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self._show_no_further(offset)

    def restart_at(self, offset: int) -> None:
        """A truncation has emptied the log, which goes on from `offset`."""
        self.log_start_offset = self.high_watermark = self.log_end_offset = offset
        self._show_no_further(offset)

    def _show_no_further(self, offset: int) -> None:
        """What comes there now was not shown."""
        if self.shown_end is not None:
            self.shown_end = min(self.shown_end, offset)

    def settle(self) -> None:
        """Finish what waits for the disk, before something else changes the segments."""
        if self.unfinished is not None and self.failure is None:
            self.unfinished.finish()

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, error: OSError) -> LogStorageError:
        """The disk broke a promise: take no more writes; returns what to tell the client.

        The same after a change that is half done for want of descriptors or memory; but then it
        is this log alone that a restart has to mend, and not its directory.
        """
        if is_exhaustion(error):
            self.failure = ExhaustionError(
                f"{self.partition} takes no more writes since a change of its files was "
                f"interrupted: {error.strerror}."
            )
        else:
            self.failure = LogStorageError(
                f"{self.partition} takes no more writes since its disk failed: {error.strerror}."
            )
        return self.failure

    # -- durability ------------------------------------------------------------------------------

    def plan_flush(self) -> FlushPlan:
        """What to sync now; a thread runs it, `complete_flush` takes note of it: see `flush`."""
        self._check_usable()
        return self.durability.plan(self.segments)

    def complete_flush(self, plan: FlushPlan) -> None:
        self.durability.complete(plan)

    def flush(self) -> None:
        """Make all of the log durable, here and now."""
        plan = self.plan_flush()
        try:
            plan.run()
        except OSError as error:
            raise self.fail(error) from error
        self.complete_flush(plan)

    def reload_producer_states(self, now_ms: int) -> None:
        """After a truncation: go back to a snapshot, and replay the log behind it."""
        self.producer_states.truncate_and_reload(
            self.files,
            self.directory,
            # As a restart does: producers of deleted records are remembered while there is a log.
            log_start_offset=self.segments[0].base_offset,
            log_end_offset=self.record_end_offset,
            now_ms=now_ms,
        )
        replay_log(self.producer_states, self.segments, self.record_end_offset)
        self.producer_states.on_high_watermark(self.high_watermark)

    def _has_changed(self) -> bool:
        """Whether anything is left to be made durable: a broker may have thousands of idle logs."""
        return (
            self.durability.has_changed(self.log_end_offset)
            or self.leader_epochs.is_dirty
            or self.producer_states.end_offset > self.producer_states.snapshot_offset
        )

    def close(self) -> None:
        """Leave everything durable, so that the next opening has nothing to recover."""
        self.settle()
        if self.failure is None and self._has_changed():
            self.segments.active.finish_indexes()
            self.segments.active.give_back_reserve()
            self.durability.segment_sealed(self.segments.active)
            self.producer_states.take_snapshot(self.files, self.directory)
            self.leader_epochs.flush()
            self.flush()
        for segment in self.segments:
            segment.close()
        self.retired.close()
