"""The index files of a segment, as `verify_segment` sees them: opened, walked, judged.

How grave a fault in an index is depends on what the next start will do. If it scans the segment, it
rebuilds the indexes from the log, whatever they say; if it trusts them, reads may go wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from headwater.storage.checkpoints import RECOVERY_POINT
from headwater.storage.directories.clean_shutdown import CLEAN_SHUTDOWN_MARKER
from headwater.storage.disk.files import File, FileSystem
from headwater.storage.inspection.index_entries import (
    HIDDEN_ENTRY,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    count_entries,
    iter_aborted_transactions,
    iter_hidden_stretches,
    iter_offset_entries,
    iter_time_entries,
)
from headwater.storage.inspection.verify.findings import Condition, Report, Severity
from headwater.storage.inspection.verify.hidden_index import HiddenIndexCheck
from headwater.storage.inspection.verify.indexes import (
    Complain,
    EndedTransaction,
    OffsetIndexCheck,
    TimeIndexCheck,
    TransactionIndexCheck,
)
from headwater.storage.segments.segment_files import (
    HIDDEN_INDEX,
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_path,
)
from headwater.wire.records import BatchHeader

#: A stretch of log without an index entry that makes searches slow.
UNINDEXED_BYTES_MAX = 1 << 20

_NO_ENTRIES: Iterator[Any] = iter(())


class IndexFiles:
    """Created before the log is opened: a broker that is writing adds to the log first."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        report: Report,
        *,
        is_active: bool,
        condition: Condition,
        is_recovered: bool,
    ) -> None:
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._report = report
        self._is_recovered = is_recovered
        # Kafka allocates the indexes of an active segment in advance and trims them in the end.
        self._may_be_blank = is_active and condition is not Condition.CLEAN
        self._is_complete = not is_active or condition is Condition.CLEAN
        # Its newest entries are written some time after the log, or rebuilt by the next start.
        self._may_lack_newest = is_active and condition in (Condition.UNCLEAN, Condition.IN_USE)
        self._offsets = self._open_offset_index()
        self._times = self._open_time_index()
        self._transactions = self._open_transaction_index()
        self._hidden = self._open_hidden_index()

    def _path(self, suffix: str) -> str:
        return segment_path(self._directory, self._base_offset, suffix)

    def _complain_of(self, suffix: str) -> Complain:
        path = self._path(suffix)
        severity = Severity.NOTE if self._is_recovered else Severity.PROBLEM
        remedy = "The next start rebuilds it from the log."
        if not self._is_recovered:
            remedy = (
                "A start trusts it; to have all rebuilt, remove "
                f"{CLEAN_SHUTDOWN_MARKER} and {RECOVERY_POINT} while the broker is stopped."
            )

        def complain(position: int | None, what: str) -> None:
            self._report.add(severity, path, position, what, remedy)

        return complain

    # -- opening ---------------------------------------------------------------------------------

    def _open_offset_index(self) -> OffsetIndexCheck:
        complain = self._complain_of(OFFSET_INDEX)
        file, count = self._open(OFFSET_INDEX, OFFSET_ENTRY, complain)
        if file is None:
            return OffsetIndexCheck(_NO_ENTRIES, complain)
        return OffsetIndexCheck(iter_offset_entries(file, self._base_offset, count), complain)

    def _open_time_index(self) -> TimeIndexCheck:
        complain = self._complain_of(TIME_INDEX)
        file, count = self._open(TIME_INDEX, TIME_ENTRY, complain)
        if file is None:
            return TimeIndexCheck(_NO_ENTRIES, complain)
        return TimeIndexCheck(iter_time_entries(file, self._base_offset, count), complain)

    def _open_transaction_index(self) -> TransactionIndexCheck:
        """Only a segment with an aborted transaction has one."""
        complain = self._complain_of(TRANSACTION_INDEX)
        path = self._path(TRANSACTION_INDEX)
        if not self._files.exists(path):
            return TransactionIndexCheck(_NO_ENTRIES, complain)
        file = self._files.open(path)
        self._check_size(file, TRANSACTION_ENTRY, complain)
        return TransactionIndexCheck(iter_aborted_transactions(file), complain)

    def _open_hidden_index(self) -> HiddenIndexCheck:
        """Only a segment with a delayed batch has one."""
        complain = self._complain_of(HIDDEN_INDEX)
        path = self._path(HIDDEN_INDEX)
        if not self._files.exists(path):
            return HiddenIndexCheck(_NO_ENTRIES, complain, may_lack_newest=self._may_lack_newest)
        file = self._files.open(path)
        self._check_size(file, HIDDEN_ENTRY, complain)
        stretches = iter_hidden_stretches(file, self._base_offset)
        return HiddenIndexCheck(stretches, complain, may_lack_newest=self._may_lack_newest)

    def _open(
        self, suffix: str, entry: struct.Struct, complain: Complain
    ) -> tuple[File | None, int]:
        path = self._path(suffix)
        if not self._files.exists(path):
            complain(None, "it is missing")
            return None, 0
        file = self._files.open(path)
        self._check_size(file, entry, complain)
        count = count_entries(file, entry)
        blank_bytes = file.size() - count * entry.size
        if blank_bytes >= entry.size and not self._may_be_blank:
            complain(count * entry.size, f"its last {blank_bytes} bytes are blank")
        return file, count

    def _check_size(self, file: File, entry: struct.Struct, complain: Complain) -> None:
        size = file.size()
        if size % entry.size and not self._may_be_blank:
            complain(size - size % entry.size, f"its size is no multiple of {entry.size}")

    # -- walking ---------------------------------------------------------------------------------

    def see(
        self,
        position: int,
        header: BatchHeader,
        aborted: EndedTransaction | None,
        *,
        is_hidden: bool,
    ) -> None:
        """A sound batch of the log; what it aborted, if it is a marker that did."""
        self._offsets.see(position, header)
        if is_hidden:
            self._times.see_hidden(header)
            self._hidden.see_hidden(position, header)
        else:
            self._times.see(header)
            self._hidden.see()
        if aborted is None:
            self._transactions.see(header)
        else:
            self._transactions.see_abort(header, aborted)

    def skip(self, end: int) -> None:
        """The log cannot be read up to the position `end`."""
        self._offsets.skip(end)
        self._times.skip()
        self._transactions.skip()
        self._hidden.skip()

    def finish(self, last_position: int) -> None:
        """The log ends with a batch at `last_position`."""
        offsets = self._offsets
        offsets.finish(last_position)
        self._times.finish(is_complete=self._is_complete)
        self._transactions.finish()
        self._hidden.finish()
        path = self._path(OFFSET_INDEX)
        serve = "Brokers before Kafka 4 made such; they serve."
        if self._times.inexact_count:
            what = f"{self._times.inexact_count} entries have an offset within a batch"
            self._report.note(self._path(TIME_INDEX), None, what, serve)
        if offsets.spanning_count:
            what = f"{offsets.spanning_count} entries stand for several batches each"
            self._report.note(path, None, what, serve)
        if offsets.unindexed_bytes_max > UNINDEXED_BYTES_MAX and not self._may_lack_newest:
            what = f"{offsets.unindexed_bytes_max} bytes of the log have no entry"
            self._report.note(path, None, what, "Searches in them are slow.")
