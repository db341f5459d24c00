"""The four tables of offsets that a log directory keeps: what they say on disk, and changing that.

There are two ways to replace a table, both atomic and durable. Periodically the owner plans a write
of all that the logs say at that moment, and a thread runs it. In between, a log may need one offset
to be on disk before it goes on, as around a truncation: `keep` writes that at once. A plan made
before a `keep` would take it back, so it is dropped when it runs, and the next period makes another
one. That, and that nobody reads a table while a thread replaces it, is what the lock is for.

A table that cannot be read is taken for absent: without recovery points everything is recovered,
without high watermarks they start over at the log start.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headwater.base.ids import TopicPartition
from headwater.storage.checkpoints import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.disk.files import FileSystem
from headwater.storage.errors import CorruptCheckpointError
from headwater.storage.partition_log import PartitionLog

_logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]


class CheckpointTable:
    """One file. Its owner is the directory; only `CheckpointWrite.run` belongs in a thread."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self._files = files
        self._checkpoint = OffsetCheckpoint(files, path)
        self._lock = threading.Lock()
        self._keep_count = 0
        self._offsets: Offsets = {}
        #: False until the file is known to hold a table: it may be absent or damaged.
        self.is_known = False

    @property
    def offsets(self) -> Offsets:
        """What is on disk; a new mapping after each change, never this one changed."""
        return self._offsets

    def read(self) -> None:
        try:
            self._offsets = self._checkpoint.read()
        except CorruptCheckpointError as error:
            _logger.error("A checkpoint file is damaged and taken for absent: %s", error)
        else:
            self.is_known = self._files.exists(self._checkpoint.path)

    def entries_of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """What the file says about these."""
        offsets = self._offsets
        return {each: offsets[each] for each in partitions if each in offsets}

    def plan(self, offsets: Offsets, sync_first: Collection[str] = ()) -> CheckpointWrite | None:
        """What replaces the table by `offsets`; None if the file says that already.

        The directories in `sync_first` are synced before the write: what makes an entry needless
        must be durable before the entry goes.
        """
        if self.is_known and offsets == self._offsets:
            return None
        return CheckpointWrite(self, offsets, self._keep_count, tuple(sync_first))

    def keep(self, changes: Mapping[TopicPartition, int | None]) -> None:
        """Make these entries durable before returning; None removes one."""
        with self._lock:
            self._keep_count += 1
            changed = {
                partition: offset
                for partition, offset in changes.items()
                if self._offsets.get(partition) != offset
            }
            if changed:
                merged = {**self._offsets, **changed}
                self._write({p: offset for p, offset in merged.items() if offset is not None})

    def _write(self, offsets: Offsets) -> None:
        self._checkpoint.write(offsets)
        self._offsets = offsets
        self.is_known = True


@dataclass(frozen=True, slots=True)
class CheckpointWrite:
    """A planned write of a whole table."""

    table: CheckpointTable
    offsets: Offsets
    keep_count: int
    sync_first: tuple[str, ...]

    def run(self) -> None:
        table = self.table
        for directory in self.sync_first:
            # A log that was deleted meanwhile has nothing left to be synced.
            with contextlib.suppress(FileNotFoundError):
                table._files.sync_dir(directory)
        with table._lock:
            if self.keep_count == table._keep_count:
                table._write(self.offsets)


class DirectoryCheckpoints:
    """The tables of one log directory."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self.recovery_points = CheckpointTable(files, f"{directory}/{RECOVERY_POINT}")
        self.high_watermarks = CheckpointTable(files, f"{directory}/{REPLICATION}")
        self.log_starts = CheckpointTable(files, f"{directory}/{LOG_START}")
        self.cleaner_offsets = CheckpointTable(files, f"{directory}/{CLEANER}")

    def __iter__(self) -> Iterator[CheckpointTable]:
        yield from (
            self.recovery_points,
            self.high_watermarks,
            self.log_starts,
            self.cleaner_offsets,
        )

    def read(self) -> None:
        for table in self:
            table.read()

    def plan_recovery_points(
        self, logs: Iterable[PartitionLog], unreadable: Collection[TopicPartition] = ()
    ) -> CheckpointWrite | None:
        """From where each log would have to be recovered now.

        In each of these plans the logs that could not be opened keep the entry that they have.
        """
        table = self.recovery_points
        offsets = {log.partition: log.recovery_point for log in logs}
        return table.plan(offsets | table.entries_of(unreadable))

    def plan_high_watermarks(
        self, logs: Iterable[PartitionLog], unreadable: Collection[TopicPartition] = ()
    ) -> CheckpointWrite | None:
        table = self.high_watermarks
        offsets = {log.partition: log.high_watermark for log in logs}
        return table.plan(offsets | table.entries_of(unreadable))

    def plan_log_starts(
        self, logs: Iterable[PartitionLog], unreadable: Collection[TopicPartition] = ()
    ) -> CheckpointWrite | None:
        """Only logs that begin within their first segment need an entry.

        One that has dropped its first segments had an entry until now, so that it did not matter
        which of them a crash brings back. Their removal must be durable before the entry goes.
        """
        table = self.log_starts
        offsets = table.entries_of(unreadable)
        sync_first = []
        for log in logs:
            if log.log_start_offset > log.segments[0].base_offset:
                offsets[log.partition] = log.log_start_offset
            elif log.partition in table.offsets:
                sync_first.append(log.directory)
        return table.plan(offsets, sync_first)

    def forget(self, partition: TopicPartition) -> None:
        """Remove what an earlier log of this partition left, before a new one is made.

        An entry of its predecessor would be believed: a recovery point behind the new log's end
        would skip recovery, and a start offset there would throw its records away.
        """
        for table in self:
            table.keep({partition: None})
