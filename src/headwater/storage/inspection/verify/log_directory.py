"""Checking a log directory: the partitions in it, and the small files at its top.

The checkpoints are read before the logs, for what they say was true of the logs by then.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from headwater.base.ids import TopicPartition, topic_id_to_text
from headwater.storage.checkpoints import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.directories.broker_metadata import META_PROPERTIES, read_broker_metadata
from headwater.storage.directories.clean_shutdown import CLEAN_SHUTDOWN_MARKER
from headwater.storage.directories.directory_entries import EntryKind, parse_directory_name
from headwater.storage.directories.directory_ownership import LOCK_FILE
from headwater.storage.directories.partition_metadata import PARTITION_METADATA
from headwater.storage.disk.files import TEMPORARY_SUFFIX, FileSystem
from headwater.storage.errors import CorruptFileError
from headwater.storage.inspection.verify.findings import Condition, Report, Severity
from headwater.storage.inspection.verify.partition import PartitionCheck, PartitionRange

_TABLES: Final = {
    RECOVERY_POINT: "the recovery point",
    REPLICATION: "the high watermark",
    LOG_START: "the start offset",
    CLEANER: "the cleaner's offset",
}
#: Any of these at its top makes a directory a log directory.
TOP_FILES: Final = frozenset({META_PROPERTIES, CLEAN_SHUTDOWN_MARKER, *_TABLES})

Offsets = dict[TopicPartition, int]
IsLocked = Callable[[str], bool]


class LogDirectoryCheck:
    """The check of one log directory, or of some partitions in it; `run` does it."""

    def __init__(
        self, report: Report, files: FileSystem, directory: str, is_locked: IsLocked
    ) -> None:
        self._report = report
        self._files = files
        self._directory = directory
        self._tables: dict[str, Offsets] = {name: {} for name in _TABLES}
        self._topic_ids: dict[str, tuple[uuid.UUID, str]] = {}
        self._names = files.list_dir(directory) if files.is_dir(directory) else []
        self._condition = self._find_condition(is_locked)

    def _find_condition(self, is_locked: IsLocked) -> Condition:
        if TOP_FILES.isdisjoint(self._names):
            return Condition.UNKNOWN
        if LOCK_FILE in self._names and is_locked(f"{self._directory}/{LOCK_FILE}"):
            return Condition.IN_USE
        if CLEAN_SHUTDOWN_MARKER in self._names:
            return Condition.CLEAN
        return Condition.UNCLEAN

    def run(self, only: list[str] | None = None) -> None:
        """Check all of the directory, or `only` the partitions' directories of these names."""
        if only is None:
            self._check_metadata()
        self._read_tables(quietly=only is not None)
        ranges: dict[TopicPartition, PartitionRange] = {}
        for name in self._names if only is None else only:
            path = f"{self._directory}/{name}"
            if name.endswith(TEMPORARY_SUFFIX):
                self._report.note(path, None, "it was never put in place", "It does no harm.")
            elif self._files.is_dir(path):
                self._check_entry(path, name, ranges, is_alone=only is not None)
        self._check_tables(ranges, only_known=only is not None)

    # -- partitions ------------------------------------------------------------------------------

    def _check_entry(
        self,
        path: str,
        name: str,
        ranges: dict[TopicPartition, PartitionRange],
        *,
        is_alone: bool,
    ) -> None:
        entry = parse_directory_name(name)
        if entry.kind is EntryKind.FOREIGN and not is_alone:
            self._report.note(path, None, "it is no partition's directory", "It is left alone.")
            return
        if entry.kind is EntryKind.DELETED and not is_alone:
            what = "the partition was deleted"
            self._report.note(path, None, what, "It is removed with a delay, or by a start.")
            return
        if entry.kind is EntryKind.STRAY:
            self._report.note(path, None, "nobody asked for this partition", "It is not served.")
        partition = entry.partition if entry.kind is not EntryKind.FUTURE else None
        try:
            found = self._check_partition(path, partition)
        except FileNotFoundError:
            if self._condition is not Condition.IN_USE:
                raise
            self._report.note(path, None, "it was removed meanwhile", "Its topic was deleted.")
            return
        except OSError as error:
            what = f"it cannot be read: {error.strerror or error}"
            self._report.problem(
                str(error.filename or path), None, what, "The disk may be failing."
            )
            return
        if entry.partition is not None:
            if entry.kind in (EntryKind.LOG, EntryKind.CLUSTER_METADATA):
                ranges[entry.partition] = found
            self._check_topic_id(path, entry.partition.topic, found.topic_id)

    def _check_partition(self, path: str, partition: TopicPartition | None) -> PartitionRange:
        recovery_point, log_start_offset, is_compacted = 0, 0, False
        if partition is not None:
            recovery_point = self._tables[RECOVERY_POINT].get(partition, 0)
            log_start_offset = self._tables[LOG_START].get(partition, 0)
            is_compacted = partition in self._tables[CLEANER]
        return PartitionCheck(
            self._files,
            path,
            self._report,
            condition=self._condition,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            has_gaps=is_compacted,
        ).run()

    def _check_topic_id(self, path: str, topic: str, topic_id: uuid.UUID | None) -> None:
        if topic_id is None:
            return
        known, elsewhere = self._topic_ids.setdefault(topic, (topic_id, path))
        if known != topic_id:
            what = (
                f"its topic id is {topic_id_to_text(topic_id)}, "
                f"but that of {elsewhere} is {topic_id_to_text(known)}"
            )
            self._report.problem(
                f"{path}/{PARTITION_METADATA}", None, what, "One is of a topic that was deleted."
            )

    # -- small files -----------------------------------------------------------------------------

    def _check_metadata(self) -> None:
        path = f"{self._directory}/{META_PROPERTIES}"
        try:
            metadata = read_broker_metadata(self._files, self._directory)
        except CorruptFileError as error:
            what = str(error).removeprefix(f"{path}: ").rstrip(".")
            self._report.problem(path, None, what, "The broker does not start with it.")
            return
        if metadata is None and self._condition is not Condition.UNKNOWN:
            self._report.problem(path, None, "it is missing", "The next start writes another.")

    def _read_tables(self, *, quietly: bool) -> None:
        for name in _TABLES:
            path = f"{self._directory}/{name}"
            try:
                self._tables[name] = OffsetCheckpoint(self._files, path).read()
            except CorruptFileError as error:
                if not quietly:
                    what = str(error).removeprefix(f"{path}: ").rstrip(".")
                    remedy = "It is taken for absent: all logs are recovered, or start over."
                    self._report.problem(path, None, what, remedy)

    def _check_tables(
        self, ranges: dict[TopicPartition, PartitionRange], *, only_known: bool
    ) -> None:
        for name, meaning in _TABLES.items():
            path = f"{self._directory}/{name}"
            for partition, offset in self._tables[name].items():
                found = ranges.get(partition)
                if found is not None:
                    self._check_offset(path, name, meaning, partition, offset, found)
                elif not only_known:
                    what = f"{partition} is not in this directory"
                    self._report.note(path, None, what, "The entry goes with the next writing.")

    def _check_offset(
        self,
        path: str,
        name: str,
        meaning: str,
        partition: TopicPartition,
        offset: int,
        found: PartitionRange,
    ) -> None:
        if 0 <= offset <= found.end_offset:
            return
        what = f"{meaning} of {partition} is {offset}, but its log ends at {found.end_offset}"
        severity = Severity.PROBLEM
        remedy = "Records that were durable are gone: take them from another replica."
        if name == REPLICATION:
            remedy = "A start takes the log's end instead."
            if self._condition is Condition.UNCLEAN:
                severity = Severity.NOTE  # It runs ahead of what a power failure leaves.
        elif name == LOG_START:
            remedy = "A start throws the log away and goes on at that offset."
        elif name == CLEANER:
            remedy = "Compaction starts over at the log's start."
        if self._condition is Condition.IN_USE:
            severity, remedy = Severity.NOTE, "The broker may have truncated it just now."
        self._report.add(severity, path, None, what, remedy)
