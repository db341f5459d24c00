"""Checking a partition's directory: its segments in order, and the small files beside them."""

from __future__ import annotations

import re
import uuid
from typing import Final, NamedTuple

from headwater.storage.checkpoints import parse_integer, parse_table
from headwater.storage.directories.partition_metadata import PARTITION_METADATA, read_topic_id
from headwater.storage.disk.files import TEMPORARY_SUFFIX, FileSystem, read_bytes
from headwater.storage.errors import CorruptFileError
from headwater.storage.inspection.verify.findings import Condition, Report, Severity
from headwater.storage.inspection.verify.segment import LogSoFar, SegmentCheck
from headwater.storage.leader_epochs import LEADER_EPOCH_CHECKPOINT, EpochEntry
from headwater.storage.producers.snapshot import decode_snapshot, snapshot_path
from headwater.storage.segments.segment_files import (
    CLEANED,
    DELETED,
    LOG,
    SNAPSHOT,
    SWAP,
    SegmentFileName,
    parse_segment_file_name,
    segment_file_name,
    segment_path,
)

_LEFTOVERS: Final = {
    CLEANED: ("compaction was interrupted while writing it", "The next start removes it."),
    SWAP: ("compaction was interrupted while swapping it in", "The next start finishes that."),
    DELETED: ("it is no longer part of the log", "It is removed with a delay, or by a start."),
    TEMPORARY_SUFFIX: ("it was never put in place", "The next start removes it."),
}
_KNOWN_NAMES: Final = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
#: What KRaft keeps beside the segments of its metadata log, and the index of what waits.
_OTHER_NAME: Final = re.compile(
    r"quorum-state|[0-9]{20}-[0-9]{10}\.checkpoint.*"
    r"|delays\.checkpoint|[0-9a-f]+-[0-9]+\.(delays|delayids)",
    re.ASCII,
)


class PartitionRange(NamedTuple):
    """What the walk over a partition's log found, for its directory's checkpoints."""

    #: The offset that names the first segment.
    first_base_offset: int
    end_offset: int
    topic_id: uuid.UUID | None


class PartitionCheck:
    """The check of one partition's directory; `run` does it."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        report: Report,
        *,
        condition: Condition,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        has_gaps: bool = False,
    ) -> None:
        self._files = files
        self._directory = directory
        self._report = report
        self._condition = condition
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        #: The partition is known to be compacted, so gaps between offsets are not worth a word.
        self._has_gaps = has_gaps
        self._snapshots: list[int] = []
        self._bases: list[int] = []

    def run(self) -> PartitionRange:
        self._take_stock()
        topic_id = self._read_topic_id()
        bases = self._bases
        first_offset = bases[0] if bases else 0
        so_far = LogSoFar(first_offset, self._read_epochs(), is_whole=first_offset == 0)
        if self._condition is Condition.CLEAN:
            so_far.epochs_from = max(first_offset, self._log_start_offset)
        for base_offset, following in zip(bases, [*bases[1:], None], strict=False):
            self._check_segment(base_offset, following, so_far)
        self._check_gaps(so_far)
        self._check_snapshots(so_far)
        self._check_epochs(so_far)
        self._report.partition_count += 1
        end_offset = so_far.next_offset
        first, active = (bases[0], bases[-1]) if bases else (end_offset, end_offset)
        return PartitionRange(first, max(end_offset, active), topic_id)

    @property
    def _is_recovered(self) -> bool:
        return self._condition is Condition.UNCLEAN

    # -- names -----------------------------------------------------------------------------------

    def _take_stock(self) -> None:
        names = self._files.list_dir(self._directory)
        parsed = [(name, parse_segment_file_name(name)) for name in names]
        live = {
            segment.base_offset
            for _, segment in parsed
            if segment is not None and segment.suffix == LOG and not segment.stage
        }
        self._bases = sorted(live)
        for name, segment in parsed:
            path = f"{self._directory}/{name}"
            stage = segment.stage if segment is not None else ""
            if name.endswith(TEMPORARY_SUFFIX):
                stage = TEMPORARY_SUFFIX
            if stage:
                # An index goes the way of its log, which is in the list already.
                if segment is None or segment.suffix == LOG or not _has_log(segment, names):
                    self._report.note(path, None, *_LEFTOVERS[stage])
            elif segment is None:
                if name not in _KNOWN_NAMES and not _OTHER_NAME.fullmatch(name):
                    self._report.note(path, None, "it is no file of a log", "It is left alone.")
            elif segment.suffix == SNAPSHOT:
                self._snapshots.append(segment.base_offset)
            elif segment.base_offset not in live:
                severity = Severity.PROBLEM
                if self._condition is Condition.IN_USE:
                    severity = Severity.NOTE  # It may be on its way out.
                what = "there is no log to this index"
                self._report.add(severity, path, None, what, "The next start removes it.")

    # -- segments --------------------------------------------------------------------------------

    def _check_segment(self, base_offset: int, following: int | None, so_far: LogSoFar) -> None:
        path = segment_path(self._directory, base_offset, LOG)
        if so_far.next_offset > base_offset:
            what = f"the segment in front of it reaches to offset {so_far.next_offset - 1}"
            self._report.problem(path, None, what, "Offsets are there twice.")
            so_far.next_offset = base_offset
        recovered = self._is_recovered and (following is None or following > self._recovery_point)
        try:
            SegmentCheck(
                self._files,
                self._directory,
                base_offset,
                following,
                self._report,
                so_far,
                condition=self._condition,
                is_recovered=recovered,
            ).run()
        except FileNotFoundError as error:
            what = "it is gone since the directory was listed"
            severity = Severity.PROBLEM
            if self._condition is Condition.IN_USE:
                severity = Severity.NOTE
            self._report.add(severity, str(error.filename), None, what, "Retention removes files.")
            so_far.lose_track()
            so_far.next_offset = max(so_far.next_offset, following or 0)
        except OSError as error:
            what = f"it cannot be read: {error.strerror or error}"
            self._report.problem(
                str(error.filename or path), None, what, "The disk may be failing."
            )
            so_far.lose_track()
            so_far.next_offset = max(so_far.next_offset, following or 0)

    def _check_gaps(self, so_far: LogSoFar) -> None:
        if so_far.first_gap is not None and not self._has_gaps:
            first, last = so_far.first_gap
            missing = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
            more = f", and there are {so_far.gap_count - 1} more gaps" * (so_far.gap_count > 1)
            remedy = "Compaction leaves gaps; without it, records are missing."
            self._report.note(self._directory, None, f"{missing} not there{more}", remedy)

    # -- small files -----------------------------------------------------------------------------

    def _read_topic_id(self) -> uuid.UUID | None:
        path = f"{self._directory}/{PARTITION_METADATA}"
        try:
            return read_topic_id(self._files, self._directory)
        except CorruptFileError as error:
            self._report.problem(path, None, _clause(error, path), "The partition stays offline.")
        return None

    def _read_epochs(self) -> list[EpochEntry] | None:
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        if not self._files.exists(path):
            return None
        try:
            return parse_table(read_bytes(self._files, path), path, _parse_epoch)
        except CorruptFileError as error:
            remedy = "The next start reads the whole log to make it anew."
            self._report.problem(path, None, _clause(error, path), remedy)
        return None

    def _check_epochs(self, so_far: LogSoFar) -> None:
        path = f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}"
        if so_far.leader_epoch >= 0 and not self._files.exists(path):
            what = f"it is missing, but the log has leader epochs up to {so_far.leader_epoch}"
            remedy = "Followers truncate by the high watermark then, which may lose records."
            self._report.problem(path, None, what, remedy)
        previous = EpochEntry(-1, -1)
        for entry in so_far.epochs or ():
            if entry.epoch <= previous.epoch or entry.start_offset <= previous.start_offset:
                what = f"{tuple(entry)} does not follow {tuple(previous)}"
                self._report.problem(path, None, what, "The next start drops what contradicts.")
            elif entry.start_offset > so_far.next_offset and not so_far.ends_in_damage:
                # Records can go that were in front of it: a truncation takes whole batches.
                what = (
                    f"epoch {entry.epoch} starts at offset {entry.start_offset}, "
                    f"but the log ends at {so_far.next_offset}"
                )
                self._report.note(path, None, what, "The next start drops the entry.")
            previous = entry

    def _check_snapshots(self, so_far: LogSoFar) -> None:
        for offset in self._snapshots:
            path = snapshot_path(self._directory, offset)
            if offset > so_far.next_offset and not so_far.ends_in_damage:
                severity = Severity.PROBLEM
                if self._condition in (Condition.UNCLEAN, Condition.IN_USE):
                    severity = Severity.NOTE
                what = f"the log ends at offset {so_far.next_offset}"
                self._report.add(severity, path, None, what, "The next start removes it.")
            try:
                entries = decode_snapshot(read_bytes(self._files, path))
            except FileNotFoundError:
                continue  # A broker at work removes those that it needs no more.
            except CorruptFileError as error:
                # A crash may tear one, which stays until it would be the one to use.
                is_newest = offset == max(self._snapshots)
                is_torn = self._condition in (Condition.UNCLEAN, Condition.IN_USE) or not is_newest
                severity = Severity.NOTE if is_torn else Severity.PROBLEM
                remedy = "A start uses an older one and reads the log from there."
                self._report.add(severity, path, None, _clause(error, path), remedy)
                continue
            for entry in entries:
                if max(entry.last_offset, entry.transaction_first_offset or -1) >= offset:
                    what = f"producer {entry.producer_id} has an offset at or behind {offset}"
                    self._report.problem(path, None, what, "Remove it: the log tells the same.")
                    break


def _has_log(segment: SegmentFileName, names: list[str]) -> bool:
    return segment_file_name(segment.base_offset, LOG, segment.stage) in names


def _parse_epoch(line: str) -> EpochEntry:
    epoch, start_offset = line.split()
    return EpochEntry(parse_integer(epoch, 32), parse_integer(start_offset, 64))


def _clause(error: Exception, path: str) -> str:
    return str(error).removeprefix(f"{path}: ").rstrip(".")
