"""All log directories of a broker, and which log is in which.

A partition has one log here, in one of the directories; while it moves to another directory it has
a second, see `future_log`. The owner is the broker's event loop. What waits for the disk is split
so that a thread can do the waiting (`log_creation`, `maintenance`); the plain methods do all of it
here and now.

A directory whose disk fails is offline with its logs. The broker goes on with the others, and
cannot go on without any: then `NoLogDirectoryError` is raised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from uuid import UUID

from headwater.base.checks import check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition, topic_id_to_text
from headwater.base.threads import RunInThread
from headwater.storage.directories.future_log import settle_duplicates
from headwater.storage.directories.log_creation import LogCreation, LogDeletion
from headwater.storage.directories.log_directory import LoadProgress, LogDirectory
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.directories.log_moves import LogMoves
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.errors import (
    InconsistentBrokerMetadataError,
    InconsistentTopicIdError,
    LogStorageError,
)
from headwater.storage.partition_log import PartitionLog

#: Logs that a thread opens before the event loop hears of it; one, where each may take long.
_LOADED_AT_ONCE = 50


class NoLogDirectoryError(Exception):
    """Every log directory is offline."""


class LogDirectories:
    def __init__(self, directories: Sequence[LogDirectory]) -> None:
        check(directories, "a broker needs a log directory")
        self.directories = list(directories)
        self.moves = LogMoves(self)

    @classmethod
    def open(
        cls, paths: Iterable[str], environment: LogEnvironment, *, cluster_id: str, node_id: int
    ) -> LogDirectories:
        """Take hold of all directories; one that fails is offline, one of others is refused."""
        directories = cls([LogDirectory(path, environment) for path in paths])
        try:
            for directory in directories.directories:
                try:
                    directory.open(cluster_id=cluster_id, node_id=node_id)
                except LogStorageError:
                    continue
            directories.check_online()
            directories._check_distinct()
        except BaseException:
            for directory in directories.directories:
                directory.ownership.release()
            raise
        return directories

    def _check_distinct(self) -> None:
        """A directory that was copied to another disk would serve the same logs twice."""
        by_id: dict[UUID | None, LogDirectory] = {}
        for directory in self.online():
            first = by_id.setdefault(directory.ownership.directory_id, directory)
            if first is not directory:
                raise InconsistentBrokerMetadataError(
                    f"The log directories {first.path} and {directory.path} have the same "
                    "directory.id in meta.properties: one must be a copy of the other."
                )

    def may_lack_records(self, boot_id: str) -> bool:
        """Whether records that were written in an earlier life may be gone.

        Not after a clean stop, and not if only the process ended: the machine still has what it had
        written. A directory that is new, as in place of a broken disk, has nothing of it.
        """
        return not all(
            directory.was_clean or (boot_id != "" and directory.ownership.last_boot_id == boot_id)
            for directory in self.directories
        )

    def note_boot(self, boot_id: str) -> None:
        """The cluster knows what this broker may lack; in a thread, for it waits for disks."""
        for directory in self.online():
            with contextlib.suppress(LogStorageError), directory.guarding():
                directory.ownership.note_boot(boot_id)

    # -- loading and closing ---------------------------------------------------------------------

    def load(self, now_ms: int) -> Iterator[LoadProgress]:
        """Open all logs, one in each step of the iteration."""
        total = sum(directory.to_load_count for directory in self.directories)
        done = 0
        for directory in self.directories:
            if directory.is_online:
                try:
                    for progress in directory.load(now_ms):
                        yield progress._replace(done=done, total=total)
                        done += 1
                except LogStorageError:
                    continue
        self.check_online()
        settle_duplicates(self.online())
        self.moves.resume(now_ms)

    async def load_in_thread(
        self,
        now_ms: int,
        run_in_thread: RunInThread,
        on_progress: Callable[[LoadProgress], None] | None = None,
    ) -> None:
        """The same without holding up the event loop; nobody else may use the logs yet."""
        steps = self.load(now_ms)
        count = 1
        while count:
            reached: list[LoadProgress] = await run_in_thread(partial(list, islice(steps, count)))
            for progress in reached:
                if on_progress is not None:
                    on_progress(progress)
            count = len(reached) and (1 if reached[-1].is_recovering else _LOADED_AT_ONCE)

    def shutdown(self, broker_epoch: int) -> None:
        """Leave all directories clean, and let go of them."""
        for directory in self.online():
            directory.room.give_up_some()
        jobs = [(each, log) for each in self.directories for log in each.all_logs()]
        thread_count = sum(each.environment.close_thread_count for each in self.directories)
        if thread_count == len(self.directories):
            for directory, log in jobs:
                directory.close_log(log)
        else:
            with ThreadPoolExecutor(thread_count) as pool:
                for _ in pool.map(lambda job: job[0].close_log(job[1]), jobs):
                    continue
        for directory in self.directories:
            directory.close(broker_epoch)

    # -- looking ---------------------------------------------------------------------------------

    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.is_online]

    def check_online(self) -> None:
        """Raise if no directory is left; call it when one may have gone."""
        for directory in self.online():
            directory.notice_failures()
        if not self.online():
            reasons = " ".join(str(directory.failure) for directory in self.directories)
            raise NoLogDirectoryError(f"The broker has no log directory left. {reasons}")

    def __iter__(self) -> Iterator[PartitionLog]:
        """The logs that can be served, without those that are on their way elsewhere."""
        for directory in self.online():
            yield from list(directory.logs.values())

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        return next((d for d in self.directories if partition in d.logs), None)

    def directory_at(self, path: str) -> LogDirectory:
        """The directory of this path, if it works."""
        for directory in self.directories:
            if directory.path == path:
                if directory.failure is not None:
                    raise directory.failure
                return directory
        raise KafkaError(
            ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of this broker's log directories."
        )

    def find(self, partition: TopicPartition) -> PartitionLog | None:
        """The partition's log, None if there is none; LogStorageError if it cannot be served."""
        for directory in self.directories:
            log = directory.logs.get(partition)
            if log is not None:
                if log.failure is not None:
                    self.check_online()
                    raise log.failure
                return log
            if partition in directory.unreadable:
                raise LogStorageError(
                    f"{partition} could not be opened: {directory.unreadable[partition].reason}"
                )
        return None

    # -- compaction ------------------------------------------------------------------------------

    def cleaner_offsets(self) -> dict[TopicPartition, int]:
        """How far each log that has been compacted is clean."""
        return {
            partition: offset
            for directory in self.online()
            for partition, offset in directory.checkpoints.cleaner_offsets.offsets.items()
            if partition in directory.logs
        }

    async def save_cleaner_offset(
        self, log: PartitionLog, offset: int, run_in_thread: RunInThread
    ) -> None:
        """Write down durably how far a log is clean, unless it has been deleted meanwhile."""
        directory = self.directory_of(log.partition)
        if directory is None or directory.logs[log.partition] is not log or log.failure is not None:
            return
        table = directory.checkpoints.cleaner_offsets
        try:
            await run_in_thread(partial(table.keep, {log.partition: offset}))
        except OSError as error:
            raise directory.fail(error) from error

    # -- making and deleting ---------------------------------------------------------------------

    def choose_directory(self, begun: Sequence[LogCreation] = ()) -> LogDirectory:
        """Where the next log goes: the directory with the fewest, also of those being made.

        A cordoned one is the last resort: a log that was assigned to this broker must be somewhere.
        """
        online = self.online()
        if not online:
            self.check_online()
        candidates = [each for each in online if not each.is_cordoned] or online

        def log_count(directory: LogDirectory) -> int:
            being_made = sum(each.directory is directory for each in begun)
            return len(directory.logs) + len(directory.future_logs) + being_made

        return min(candidates, key=log_count)

    def begin_creation(
        self,
        partition: TopicPartition,
        topic_id: UUID | None,
        now_ms: int,
        *,
        is_new: bool = True,
        path: str | None = None,
        begun: Sequence[LogCreation] = (),
    ) -> LogCreation:
        """Start making a log; `begun` are others that are being made and spread with it.

        A partition that is not new may have its log in a directory that is offline. Then an empty
        one must not take its place.
        """
        offline = [d.path for d in self.directories if not d.is_online]
        if offline and not is_new:
            raise LogStorageError(
                f"{partition} may have its log in {' or '.join(offline)}, which is offline."
            )
        directory = self.choose_directory(begun) if path is None else self.directory_at(path)
        return LogCreation.begin(directory, partition, topic_id, now_ms)

    def create(
        self,
        partition: TopicPartition,
        topic_id: UUID | None,
        now_ms: int,
        *,
        is_new: bool = True,
        path: str | None = None,
    ) -> PartitionLog:
        """The partition's log, made if there is none; it must be that of the same topic."""
        log = self.find(partition)
        if log is not None:
            self.check_topic_id(partition, topic_id)
            return log
        creation = self.begin_creation(partition, topic_id, now_ms, is_new=is_new, path=path)
        with creation.directory.guarding():
            creation.run()
        return creation.complete()

    def check_topic_id(self, partition: TopicPartition, topic_id: UUID | None) -> None:
        """Refuse another topic's log; one that has no id yet gets this one."""
        directory = self.directory_of(partition)
        if directory is None or topic_id is None:
            return
        known = directory.topic_ids.get(partition)
        if known is None:
            with directory.guarding():
                write_topic_id(directory.files, directory.logs[partition].directory, topic_id)
            directory.topic_ids[partition] = topic_id
        elif known != topic_id:
            raise InconsistentTopicIdError(
                f"{partition} in {directory.path} belongs to the topic with id "
                f"{topic_id_to_text(known)}, not to the one with id {topic_id_to_text(topic_id)}."
            )

    def begin_deletion(
        self, partitions: Iterable[TopicPartition], now_ms: int
    ) -> list[LogDeletion]:
        """Take logs out of service; when each of these has run, they cannot come back."""
        wanted = set(partitions)
        for directory in self.directories:
            if directory.failure is not None and not wanted.isdisjoint(directory.logs):
                raise directory.failure
        self.moves.forget(wanted)
        return [LogDeletion.begin(directory, wanted, now_ms) for directory in self.online()]

    def delete(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Delete logs durably; their files go `file.delete.delay.ms` later."""
        for deletion in self.begin_deletion(partitions, now_ms):
            with deletion.directory.guarding():
                deletion.run()
