"""Opening a partition's log, after a clean stop or after a crash.

After a clean stop the files are as they were left: opening reads a few index entries. Otherwise the
segment that holds the recovery point and all behind it are scanned batch by batch. The scan checks
every checksum, rebuilds the indexes, the producer states and the leader epochs from what it reads,
and cuts the log at the first thing that is not a whole, valid batch: beyond it nothing was ever
promised to anyone. The same goes for a segment that lost its end at a batch boundary, which shows
as a gap to the next one: what follows a gap must not be kept, or a replica would never notice that
it misses records. What was found sound is synced before the log is handed out, since after a mere
crash of the process it may still be only in the page cache.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import CorruptCheckpointError, CorruptIndexError
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from headwater.storage.leader_epochs import EpochEntry, LeaderEpochs
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.replay import replay_batch, replay_log
from headwater.storage.producers.snapshot import (
    load_latest_snapshot,
    remove_snapshots_above,
    remove_stray_snapshots,
    stray_snapshots,
)
from headwater.storage.producers.state import PRODUCER_ID_EXPIRATION_MS, ProducerStates
from headwater.storage.recovery.interrupted_changes import finish_interrupted_changes
from headwater.storage.segments.batch_scan import ScannedBatch, scan_batches, validate_entry
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import LOG, SNAPSHOT, SegmentFileName
from headwater.storage.segments.segment_list import SegmentList
from headwater.wire.records import CorruptRecordError

_logger = logging.getLogger(__name__)


def _keep_nothing(_offset: int) -> None:
    """For a log on its own, of which no checkpoint file tells."""


@dataclass(slots=True)
class LogLoader:
    """What opening a log needs to know; `load` does it."""

    partition: TopicPartition
    directory: str
    config: LogConfig
    files: FileSystem
    handles: HandleCache
    now_ms: int
    is_clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    random_source: random.Random = field(default_factory=lambda: random.Random(0))
    #: Whether a gap between segments behind the recovery point is the end of a segment that a
    #: crash took. Not so in a directory that Kafka wrote, or whose recovery point is not known.
    gaps_are_losses: bool = True
    #: Called around a truncation with the recovery point that must survive a crash.
    keep_recovery_point: Callable[[int], None] = _keep_nothing
    #: Called before retention drops segments with the start offset that must survive a crash.
    keep_log_start: Callable[[int], None] = _keep_nothing
    #: What `load` had to scan, None if nothing, and what of that it cut off.
    scanned_bytes: int | None = field(default=None, init=False)
    cut_bytes: int = field(default=0, init=False)

    def load(self) -> PartitionLog:
        if not self.files.exists(self.directory):
            self.files.make_dir(self.directory)
            self.files.sync_dir(self.directory.rpartition("/")[0])
        names = finish_interrupted_changes(self.files, self.directory)
        snapshots = [name.base_offset for name in names if name.suffix == SNAPSHOT]
        segments = self._open_segments(names)
        epochs, epochs_are_sound = self._load_epochs()
        states = ProducerStates(
            self.partition, producer_id_expiration_ms=self.producer_id_expiration_ms
        )
        first_unsound = self._first_unsound(segments) if epochs_are_sound else 0
        if first_unsound is None:
            sound_end = segments.active.next_offset
            self._load_states(states, segments, sound_end, snapshots)
        else:
            sound_end = segments[first_unsound].base_offset
            self._load_states(states, segments, sound_end, snapshots)
            was_cut = self._recover(segments, first_unsound, states, epochs)
        log_start_offset = self._settle_start(segments, states, epochs)
        base_offsets = [segment.base_offset for segment in segments]
        if stray_snapshots(snapshots, base_offsets):
            remove_stray_snapshots(self.files, self.directory, base_offsets)
        log = PartitionLog(
            self.partition,
            self.directory,
            self.config,
            files=self.files,
            handles=self.handles,
            segments=segments,
            producer_states=states,
            leader_epochs=epochs,
            log_start_offset=log_start_offset,
            flushed_offset=sound_end,
            random_source=self.random_source,
            keep_recovery_point=self.keep_recovery_point,
            keep_log_start=self.keep_log_start,
        )
        if first_unsound is None:
            log.durability.opened_clean(log.log_end_offset)
        else:
            log.durability.recovered(
                segments.sealed[first_unsound:], min(log.log_end_offset, self.recovery_point)
            )
            if was_cut or log.flushed_offset < log.log_end_offset:
                log.flush()
        if log.recovery_point < self.recovery_point:
            # The log came back shorter. What is appended now is not safe up to the old point.
            self.keep_recovery_point(log.recovery_point)
        return log

    def _load_epochs(self) -> tuple[LeaderEpochs, bool]:
        """The leader epochs, and whether they need not be rebuilt by scanning the whole log."""
        try:
            return LeaderEpochs.load(self.files, self.directory), True
        except CorruptCheckpointError as error:
            _logger.error(
                "%s: its leader epochs are lost, scanning for them: %s", self.partition, error
            )
            return LeaderEpochs(self.files, self.directory), False

    # -- segments --------------------------------------------------------------------------------

    def _open_segments(self, names: list[SegmentFileName]) -> SegmentList:
        segments = SegmentList()
        bases = sorted(name.base_offset for name in names if name.suffix == LOG)
        for base_offset, following in zip_longest(bases, bases[1:]):
            segment = self._segment(base_offset)
            if following is not None and following <= self.log_start_offset:
                # Retention had dropped it and a crash brought it back, perhaps not its neighbours.
                segment.remove_files()
            else:
                segments.add(segment)
        if not bases:
            segments.add(self._segment(self.log_start_offset))
        for segment in segments.sealed:
            following = segments.next_base_offset(segment)
            segment.next_offset = segment.base_offset if following is None else following
        return segments

    def _segment(self, base_offset: int) -> LogSegment:
        return LogSegment(
            self.files,
            self.handles,
            self.directory,
            base_offset,
            self.config,
            created_ms=self.now_ms,
        )

    def _first_unsound(self, segments: SegmentList) -> int | None:
        """The number of the first segment that must be scanned, None if all can be trusted."""
        first = None
        if not self.is_clean:
            # At the very start of a segment the point says nothing of the one in front: it may have
            # been sealed, and its indexes finished, after the flush that set the point.
            first = max(segments.floor_number(self.recovery_point - 1), 0)
        for number, segment in enumerate(list(segments)[:first]):
            try:
                segment.sanity_check()
                if segment is segments.active:
                    segment.find_end()
                else:
                    segment.seal()
            except (CorruptIndexError, CorruptRecordError) as error:
                _logger.warning("%s will be scanned: %s", segment.log.path, error)
                return number
        return first

    # -- recovery --------------------------------------------------------------------------------

    def _recover(
        self, segments: SegmentList, first: int, states: ProducerStates, epochs: LeaderEpochs
    ) -> bool:
        """Scan from segment number `first` on; returns whether something had to be cut off."""
        was_cut = False
        self.scanned_bytes = 0
        found_epochs: list[EpochEntry] = []
        for segment in list(segments)[first:]:
            self.scanned_bytes += segment.size_bytes

            def account(batch: ScannedBatch, segment: LogSegment = segment) -> None:
                replay_batch(states, batch, segment)
                epoch = batch.header.leader_epoch
                if epoch >= 0 and (not found_epochs or found_epochs[-1].epoch != epoch):
                    found_epochs.append(EpochEntry(epoch, batch.header.base_offset))

            cut_bytes = recover_segment(segment, account)
            self.cut_bytes += cut_bytes
            was_cut = cut_bytes > 0
            following = segments.next_base_offset(segment)
            if following is None:
                break
            if was_cut or self._is_loss(segment.next_offset, following):
                self._drop_behind(segments, segment)
                was_cut = True
                break
            segment.seal()
            states.end_offset = following
            states.take_snapshot(self.files, self.directory, durable=False)
        states.end_offset = max(states.end_offset, segments.active.next_offset)
        # What the file says of epochs in front of the end is right, and more than the log can say:
        # compaction may have taken the first record of an epoch, or all of them.
        epochs.truncate_from_end(segments.active.next_offset, flush=False)
        latest = epochs.latest_epoch
        epochs.assign_all(e for e in found_epochs if latest is None or e.epoch > latest)
        epochs.flush()
        return was_cut

    def _is_loss(self, end_offset: int, following: int) -> bool:
        """Whether a segment ended at `following` when it was sealed, but does not any more.

        Neither appends nor our compaction leave a gap between segments. Kafka's compaction does,
        and a log that came from there keeps its gaps, in front of the recovery point.
        """
        return self.gaps_are_losses and end_offset < following and following > self.recovery_point

    def _drop_behind(self, segments: SegmentList, last: LogSegment) -> None:
        """The log was cut inside `last`: what follows does not continue it any more."""
        for segment in [s for s in segments if s.base_offset > last.base_offset]:
            _logger.warning(
                "%s is dropped: the log was cut at offset %d", segment.log.path, last.next_offset
            )
            self.cut_bytes += segment.size_bytes
            segments.remove(segment)
            segment.remove_files()
        self.files.sync_dir(self.directory)

    def _load_states(
        self,
        states: ProducerStates,
        segments: SegmentList,
        end_offset: int,
        snapshots: list[int],
    ) -> None:
        """The producers as they were at `end_offset`, up to which the log is sound."""
        remove_snapshots_above(self.files, self.directory, end_offset, listed=snapshots)
        # One from before the log's start lacks what happened in the records that are gone.
        usable = [offset for offset in snapshots if offset >= segments[0].base_offset]
        snapshot = load_latest_snapshot(
            self.files, self.directory, at_or_below=end_offset, listed=usable
        )
        if snapshot is None:
            states.load((), segments[0].base_offset, self.now_ms)
        else:
            states.load(snapshot.entries, snapshot.offset, self.now_ms)
        replay_log(states, segments, end_offset)

    def _settle_start(
        self, segments: SegmentList, states: ProducerStates, epochs: LeaderEpochs
    ) -> int:
        """The log start offset, which no record may precede and no log may end before."""
        log_start_offset = max(self.log_start_offset, segments[0].base_offset)
        if segments.active.next_offset < log_start_offset:
            _logger.warning(
                "%s ends at %d, before its start offset %d: it goes on there, empty",
                self.partition,
                segments.active.next_offset,
                log_start_offset,
            )
            for segment in list(segments):
                segments.remove(segment)
                segment.remove_files()
            segments.add(self._segment(log_start_offset))
            states.truncate_fully(self.files, self.directory, log_start_offset)
            epochs.clear()
        epochs.truncate_from_start(log_start_offset)
        return log_start_offset


def recover_segment(segment: LogSegment, account: Callable[[ScannedBatch], None]) -> int:
    """Scan a segment, rebuild its indexes, cut its torn tail; returns the bytes cut off."""
    size_bytes = segment.size_bytes
    segment.reset_for_recovery()
    try:
        for batch in scan_batches(segment.log, 0, size_bytes):
            header = batch.header
            validate_entry(batch.data, 0, header)
            # Offsets are not covered by the checksum: a torn header may carry any.
            if not segment.next_offset <= header.base_offset <= header.last_offset or (
                header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            ):
                raise CorruptRecordError(
                    f"Offset {header.base_offset} at position {batch.position} does not follow "
                    f"{segment.next_offset}."
                )
            account(batch)
            segment.note(header)
    except KafkaError as error:
        _logger.warning(
            "%s: cut at position %d of %d: %s",
            segment.log.path,
            segment.size_bytes,
            size_bytes,
            error,
        )
    # Also where nothing is torn: it gives back what was reserved for appends that did not come.
    segment.log.truncate(segment.size_bytes)
    return size_bytes - segment.size_bytes
