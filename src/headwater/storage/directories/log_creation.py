"""Making a partition's log, and taking one out of service, durably.

Both wait for the disk several times, so both are split like a flush: the owner of the directory
begins, `run` may then wait in a thread, and the owner completes.

A log is made in this order: what a deleted predecessor left in the checkpoints goes, the directory
gets its topic's id, the log its first segment, and at last the name becomes durable. A crash in
between leaves nothing, or an empty log.

A log is deleted by renaming its directory, which takes it away at once however large it is. When
`run` has returned, the deletion survives a crash. The files go `file.delete.delay.ms` later, so
that readers who were given a region of them can finish.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.storage.directories.directory_entries import (
    deleted_name,
    entry_path,
    future_name,
    log_name,
    stray_name,
)
from headwater.storage.directories.log_directory import LogDirectory, Removal
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader


@dataclass(slots=True)
class LogCreation:
    """A log in the making."""

    directory: LogDirectory
    partition: TopicPartition
    topic_id: uuid.UUID | None
    is_future: bool
    loader: LogLoader
    log: PartitionLog | None = None

    @classmethod
    def begin(
        cls,
        directory: LogDirectory,
        partition: TopicPartition,
        topic_id: uuid.UUID | None,
        now_ms: int,
        *,
        is_future: bool = False,
    ) -> LogCreation:
        if directory.failure is not None:
            raise directory.failure
        taken = partition in directory.logs or partition in directory.future_logs
        check(not taken, "%s has a log in %s already", partition, directory.path)
        unique_id = directory.environment.new_id()
        name = future_name(partition, unique_id) if is_future else log_name(partition)
        known = directory.loader(partition, entry_path(directory.path, name), now_ms)
        # It is a new log: nothing that the directory knows under this name concerns it.
        loader = replace(known, is_clean=True, recovery_point=0, log_start_offset=0)
        return cls(directory, partition, topic_id, is_future, loader)

    def run(self) -> None:
        directory, path = self.directory, self.loader.directory
        directory.checkpoints.forget(self.partition)
        directory.files.make_dir(path)
        if self.topic_id is not None:
            write_topic_id(directory.files, path, self.topic_id)
        self.log = self.loader.load()
        directory.files.sync_dir(directory.path)

    def complete(self) -> PartitionLog:
        log = self.log
        if log is None:
            raise LogStorageError(f"{self.partition} was not made.")
        self.directory.adopt(log, self.topic_id, is_future=self.is_future)
        return log


@dataclass(slots=True)
class LogDeletion:
    """Logs of one directory that have left it; `run` makes that durable."""

    directory: LogDirectory

    @classmethod
    def begin(
        cls, directory: LogDirectory, partitions: Collection[TopicPartition], now_ms: int
    ) -> LogDeletion:
        for log in directory.all_logs():
            if log.partition in partitions:
                path = take_away(directory, log, _deleted_name(directory, log.partition))
                due_ms = now_ms + log.config.file_delete_delay_ms
                directory.removals.append(Removal(due_ms, path, log))
        for partition in sorted(directory.unreadable.keys() & set(partitions)):
            path = entry_path(directory.path, _deleted_name(directory, partition))
            with directory.guarding():
                directory.files.rename(directory.unreadable.pop(partition).path, path)
            directory.removals.append(Removal(now_ms, path, None))
        return cls(directory)

    def run(self) -> None:
        self.directory.files.sync_dir(self.directory.path)


def _deleted_name(directory: LogDirectory, partition: TopicPartition) -> str:
    return deleted_name(partition, directory.environment.new_id())


def set_aside(directory: LogDirectory, log: PartitionLog) -> str:
    """Make a stray of a log that is not to be served, durably; returns where it is kept."""
    path = take_away(directory, log, stray_name(log.partition, directory.environment.new_id()))
    log.close()
    with directory.guarding():
        directory.files.sync_dir(directory.path)
    return path


def take_away(directory: LogDirectory, log: PartitionLog, name: str) -> str:
    """Rename a log's directory and end its service; returns the new path."""
    path = entry_path(directory.path, name)
    with directory.guarding():
        log.settle()
        directory.files.rename(log.directory, path)
    is_future = directory.future_logs.get(log.partition) is log
    del (directory.future_logs if is_future else directory.logs)[log.partition]
    directory.topic_ids.pop(log.partition, None)
    relocate(log, path)
    log.failure = LogStorageError(f"{log.partition} is no longer in {directory.path}.")
    return path


def relocate(log: PartitionLog, path: str) -> None:
    """The log's directory was renamed to `path`: its files are to be found there."""
    log.directory = path
    for segment in log.segments:
        segment.move_to_directory(path)
    log.leader_epochs.moved_to(path)
    log.durability.directory_moved(path)
