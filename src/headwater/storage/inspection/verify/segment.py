"""Checking one segment: every batch of its log, and its indexes alongside.

The log is walked once, past whatever damage it has. `LogSoFar` is what the segments in front leave
behind and the next ones go on from: offsets and leader epochs, which may only rise, and
transactions that are open.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from headwater.storage.disk.files import FileSystem
from headwater.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from headwater.storage.inspection.damage_scan import Damage, describe_record_error, scan_past_damage
from headwater.storage.inspection.dump.log_files import RECORD_ERRORS
from headwater.storage.inspection.verify.findings import Condition, Report
from headwater.storage.inspection.verify.index_files import IndexFiles
from headwater.storage.inspection.verify.indexes import EndedTransaction
from headwater.storage.leader_epochs import EpochEntry
from headwater.storage.segments.batch_scan import ScannedBatch, validate_entry
from headwater.storage.segments.segment_files import LOG, segment_path
from headwater.wire.delayed.delayed_batch import DelayedKind, decode_delayed_batch
from headwater.wire.records import (
    MAGIC_V2,
    BatchHeader,
    ControlType,
    decode_batch,
    decode_control_record,
    read_control_type,
)

#: Progress is told at least this often.
_PROGRESS_BYTES = 4 << 20


@dataclass(slots=True)
class LogSoFar:
    """The state of a partition's log at the end of what has been walked."""

    next_offset: int
    #: What leader-epoch-checkpoint says; None if it is missing or cannot be read.
    epochs: list[EpochEntry] | None
    #: From which offset on it must have an entry; None if it is not known where the log starts,
    #: as the table begins there and not where the first segment does.
    epochs_from: int | None = None
    leader_epoch: int = -1
    #: By producer id, the first offset of each transaction that has records but no end yet.
    open_transactions: dict[int, int] = field(default_factory=dict)
    #: Every record since offset 0 has been seen, so nothing about transactions is unknown.
    is_whole: bool = True
    #: The last that was seen is not understood, so where the log ends is not certain.
    ends_in_damage: bool = False
    gap_count: int = 0
    first_gap: tuple[int, int] | None = None

    def lose_track(self) -> None:
        """Something could not be read: whatever is open may have ended there."""
        self.is_whole = False
        self.ends_in_damage = True
        self.open_transactions.clear()

    def note_gap(self, offset: int) -> None:
        self.is_whole = False
        self.gap_count += 1
        if self.first_gap is None:
            self.first_gap = (self.next_offset, offset - 1)

    def epoch_at(self, offset: int) -> int | None:
        """The epoch that the checkpoint gives for an offset, None if it gives none."""
        if not self.epochs:
            return None
        number = bisect_right(self.epochs, offset, key=lambda entry: entry.start_offset) - 1
        return self.epochs[number].epoch if number >= 0 else None

    def needs_epoch(self, offset: int) -> bool:
        return self.epochs_from is not None and offset >= self.epochs_from


class SegmentCheck:
    """The check of one segment; `run` does it."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        next_base_offset: int | None,
        report: Report,
        so_far: LogSoFar,
        *,
        condition: Condition,
        is_recovered: bool,
    ) -> None:
        self._files = files
        self._path = segment_path(directory, base_offset, LOG)
        self._base_offset = base_offset
        #: Where the segment behind this one starts; None for the active one.
        self._next_base_offset = next_base_offset
        self._report = report
        self._so_far = so_far
        self._condition = condition
        #: Whether the next start of a broker scans this segment and rebuilds its indexes.
        self._is_recovered = is_recovered
        self._indexes = IndexFiles(
            files,
            directory,
            base_offset,
            report,
            is_active=next_base_offset is None,
            condition=condition,
            is_recovered=is_recovered,
        )
        self._is_misnamed = False
        self._overlaps = False
        self._contradicted_epochs: tuple[int, int | None] | None = None

    def run(self) -> None:
        log = self._files.open(self._path)
        size = log.size()
        last_position = 0
        told_bytes = 0
        for found in scan_past_damage(log, 0, size):
            position = found.position
            if position - told_bytes >= _PROGRESS_BYTES:
                self._report.on_bytes(position - told_bytes)
                told_bytes = position
            if isinstance(found, Damage):
                self._note_damage(found, reaches_end=position + found.size == size)
                self._pass_over(position + found.size)
            elif self._is_sound(found):
                last_position = position
                is_hidden = found.header.is_delayed and self._is_delayed(found)
                ended = self._ended_by(found)
                self._indexes.see(position, found.header, ended, is_hidden=is_hidden)
            else:
                self._pass_over(position + found.header.size_bytes)
        self._indexes.finish(last_position)
        self._report.on_bytes(size - told_bytes)
        self._report.segment_count += 1
        self._report.size_bytes += size

    def _pass_over(self, end: int) -> None:
        self._indexes.skip(end)
        self._so_far.lose_track()

    def _problem(self, position: int, what: str, remedy: str | None = None) -> None:
        self._report.problem(self._path, position, what, remedy or self._log_remedy())

    # -- damage ----------------------------------------------------------------------------------

    def _note_damage(self, damage: Damage, *, reaches_end: bool) -> None:
        extent = f"the last {damage.size} bytes" if reaches_end else f"{damage.size} bytes"
        what = f"{damage.reason} ({extent} are not understood)"
        if damage.is_torn_tail and self._next_base_offset is None:
            if self._condition is Condition.IN_USE:
                remedy = "The broker may be writing it just now."
                self._report.note(self._path, damage.position, what, remedy)
                return
            if self._condition is Condition.UNCLEAN:
                remedy = "The next start cuts it off."
                self._report.note(self._path, damage.position, what, remedy)
                return
        self._problem(damage.position, what)

    def _log_remedy(self) -> str:
        if self._is_recovered:
            return f"The next start cuts the log here, at offset {self._so_far.next_offset}."
        return (
            "A start does not look here, and who reads this gets an error: "
            "take the partition from another replica."
        )

    # -- batches ---------------------------------------------------------------------------------

    def _is_sound(self, batch: ScannedBatch) -> bool:
        """Check a batch; False if its header cannot be believed."""
        header, position = batch.header, batch.position
        try:
            validate_entry(batch.data, 0, header)
        except RECORD_ERRORS as error:
            self._problem(position, describe_record_error(error))
            return False
        self._check_offsets(position, header)
        self._check_epoch(position, header)
        self._report.batch_count += 1
        if self._report.deep:
            self._report.record_count += self._check_records(batch)
        else:
            self._report.record_count += header.record_count
        self._so_far.ends_in_damage = False
        return True

    def _check_offsets(self, position: int, header: BatchHeader) -> None:
        so_far, first, last = self._so_far, header.base_offset, header.last_offset
        following = self._next_base_offset
        if first < self._base_offset:
            if not self._is_misnamed:
                self._is_misnamed = True
                what = f"offset {first} lies before {self._base_offset}, where the segment starts"
                self._problem(position, what)
        elif first < so_far.next_offset:
            self._problem(position, f"offset {first} follows offset {so_far.next_offset - 1}")
        elif first > so_far.next_offset and not so_far.ends_in_damage and header.magic >= MAGIC_V2:
            # Before magic 2 a wrapper of several messages shows only the last one's offset.
            so_far.note_gap(first)
        if last - self._base_offset > RELATIVE_OFFSET_MAX:
            self._problem(position, f"offset {last} is too far from the segment's start")
        if following is not None and last >= following and not self._overlaps:
            self._overlaps = True
            what = f"offset {last} belongs into the segment that starts at {following}"
            self._problem(position, what)
        if header.record_count != header.last_offset_delta + 1:
            so_far.is_whole = False
        so_far.next_offset = header.next_offset

    def _check_epoch(self, position: int, header: BatchHeader) -> None:
        so_far, epoch = self._so_far, header.leader_epoch
        if header.magic < MAGIC_V2:
            return  # There were no leader epochs then.
        if epoch < so_far.leader_epoch:
            what = f"leader epoch {epoch} follows leader epoch {so_far.leader_epoch}"
            self._problem(position, what, "Replicas may disagree about these records.")
        so_far.leader_epoch = epoch
        if so_far.epochs is None or epoch < 0:
            return
        known = so_far.epoch_at(header.base_offset)
        if known is None and not so_far.needs_epoch(header.base_offset):
            return
        if known == epoch or (epoch, known) == self._contradicted_epochs:
            return
        # Once for a run of batches: it is probably the one entry of the table that is wrong.
        self._contradicted_epochs = (epoch, known)
        remedy = "A follower that compares epochs would truncate at the wrong offset."
        if self._is_recovered:
            remedy = "The next start corrects the checkpoint from the log."
        self._problem(
            position,
            f"the batch at offset {header.base_offset} is of leader epoch {epoch}, but "
            f"leader-epoch-checkpoint has {'none' if known is None else known} there",
            remedy,
        )

    def _check_records(self, batch: ScannedBatch) -> int:
        """Look into the batch; returns how many records it holds."""
        header, position = batch.header, batch.position
        was_written = "The checksum is right, so it was written like this."
        try:
            records = decode_batch(batch.data, check_crc=False)
        except RECORD_ERRORS as error:
            what = f"its records cannot be read: {describe_record_error(error)}"
            self._problem(position, what, was_written)
            return 0
        previous = -1
        for record in records:
            if record.offset <= previous:
                what = f"a record of offset {record.offset} follows one of offset {previous}"
                self._problem(position, what, was_written)
                break
            previous = record.offset
        if header.magic >= MAGIC_V2 and records:
            largest = max(record.timestamp for record in records)
            if largest != header.max_timestamp:
                what = f"its largest timestamp is {largest}, not {header.max_timestamp}"
                self._report.note(self._path, position, what, was_written)
        return len(records)

    def _is_delayed(self, batch: ScannedBatch) -> bool:
        """Whether what is a delayed batch by its header is none of KRaft's own log; look into it.

        Where it cannot be read it is one to a broker.
        """
        try:
            delayed = decode_delayed_batch(batch.data, check_crc=False)
            if self._report.deep:
                for each in delayed:
                    if each.kind is DelayedKind.MESSAGE:
                        each.record()
        except RECORD_ERRORS as error:
            if _is_of_quorum(batch):
                return False
            what = f"the delayed records cannot be read: {describe_record_error(error)}"
            self._problem(batch.position, what, "They are never delivered.")
        return True

    # -- transactions ----------------------------------------------------------------------------

    def _ended_by(self, batch: ScannedBatch) -> EndedTransaction | None:
        """The transaction that the batch aborts; None if it does not."""
        header, so_far = batch.header, self._so_far
        if not header.is_control or header.is_delayed:
            if header.is_transactional and header.record_count > 0:
                so_far.open_transactions.setdefault(header.producer_id, header.base_offset)
            return None
        if not header.has_producer_id or header.record_count == 0:
            return None
        try:
            marker = decode_control_record(decode_batch(batch.data, check_crc=False)[0])
        except RECORD_ERRORS as error:
            what = f"the transaction marker cannot be read: {describe_record_error(error)}"
            self._problem(batch.position, what)
            return None
        first_offset = so_far.open_transactions.pop(header.producer_id, None)
        if marker.type is not ControlType.ABORT:
            return None
        if not so_far.is_whole:
            return EndedTransaction(first_offset is not None)
        stable = min(so_far.open_transactions.values(), default=header.next_offset)
        return EndedTransaction(first_offset is not None, first_offset, stable)


def _is_of_quorum(batch: ScannedBatch) -> bool:
    """Whether a control batch is one that KRaft writes to its log."""
    try:
        control_type = read_control_type(decode_batch(batch.data, check_crc=False)[0])
    except (*RECORD_ERRORS, IndexError):
        return False
    return ControlType.COMMIT < control_type < ControlType.DELAYED
