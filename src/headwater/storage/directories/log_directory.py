"""One of a broker's log directories: what is in it, and whether its disk still works.

A directory goes through these steps:

1. `open` takes hold of it (see `directory_ownership`), reads its checkpoints and looks at what is
   in it. The clean-shutdown marker is removed durably, for from now on files change.
2. `load` opens its logs one by one; after an unclean stop this is where they are recovered.
3. While the broker runs, `plan_*` say what to write into the checkpoints.
4. Logs are closed, which makes them durable; then `close` writes the checkpoints, and the
   marker last of all.

When its disk fails, at any of these, the directory goes offline with all its logs: they refuse
writes with `LogStorageError`, and the broker's other directories go on. It stays so until the
broker is started again, because after a failed sync nobody knows what the disk holds.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.storage.directories.directory_checkpoints import (
    CheckpointTable,
    CheckpointWrite,
    DirectoryCheckpoints,
)
from headwater.storage.directories.directory_entries import DirectoryEntry, EntryKind, list_entries
from headwater.storage.directories.directory_ownership import DirectoryOwnership
from headwater.storage.directories.directory_room import NO_ROOM_ERRORS, DirectoryRoom
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.directories.partition_metadata import read_topic_id
from headwater.storage.errors import (
    CorruptFileError,
    ExhaustionError,
    LogStorageError,
    is_exhaustion,
)
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.recovery.recovered_logs import RecoveredLogs

_logger = logging.getLogger(__name__)


class LoadProgress(NamedTuple):
    """`done` of `total` logs are loaded, and now it is this one's turn."""

    done: int
    total: int
    partition: TopicPartition
    is_recovering: bool


class UnreadableLog(NamedTuple):
    """A log that could not be opened for what is in it; it is left as it is."""

    path: str
    reason: str


class Removal(NamedTuple):
    """A deleted log's directory, to be removed once nobody can be reading it."""

    due_ms: int
    path: str
    log: PartitionLog | None


class LogDirectory:
    def __init__(self, path: str, environment: LogEnvironment) -> None:
        self.path = path
        self.environment = environment
        self.files = environment.files
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, uuid.UUID] = {}
        self.unreadable: dict[TopicPartition, UnreadableLog] = {}
        self.removals: deque[Removal] = deque()
        self.failure: LogStorageError | None = None
        self.is_loaded = False
        self.recovered = RecoveredLogs()
        self.ownership = DirectoryOwnership(self.files, path)
        self.checkpoints = DirectoryCheckpoints(self.files, path)
        self.room = DirectoryRoom(self.files, path, environment.reserve_bytes)
        self._to_load: list[DirectoryEntry] = []

    # -- failure ---------------------------------------------------------------------------------

    @property
    def is_online(self) -> bool:
        return self.failure is None

    @property
    def is_cordoned(self) -> bool:
        """Whether it gets no new logs."""
        return self.path in self.environment.cordoned_paths()

    @contextlib.contextmanager
    def guarding(self) -> Iterator[None]:
        """Work on this disk; if it fails, go offline and say so with `LogStorageError`."""
        if self.failure is not None:
            raise self.failure
        try:
            yield
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> LogStorageError:
        """An operation on this disk failed; returns what to tell whoever asked for it."""
        reason = f"{error.strerror or error} ({error.filename})"
        if is_exhaustion(error):
            return ExhaustionError(f"{self.path} could not be used just now: {reason}.")
        return self.go_offline(reason)

    def fail_checkpoint(self, error: OSError) -> None:
        """A periodic checkpoint failed. One that found no room is written later.

        The old one stands until then. Anything else that finds no room may be half done, and then
        it is a failure as any.
        """
        if error.errno in NO_ROOM_ERRORS:
            self.room.ran_out()
        else:
            self.fail(error)

    def notice_failures(self) -> None:
        """Go offline if one of the logs met a failure of the disk."""
        for log in self.all_logs():
            failure = log.failure
            is_disk = failure is not None and not isinstance(failure, ExhaustionError)
            if is_disk and self.failure is None:
                self.go_offline(str(failure).rstrip("."))

    def go_offline(self, reason: str) -> LogStorageError:
        """Serve nothing from here any more; returns what to tell whoever asks."""
        if self.failure is None:
            _logger.error("The log directory %s goes offline: %s", self.path, reason)
            self.failure = LogStorageError(f"The log directory {self.path} is offline: {reason}.")
            for log in self.all_logs():
                log.failure = self.failure
        return self.failure

    # -- opening ---------------------------------------------------------------------------------

    def open(self, *, cluster_id: str, node_id: int) -> None:
        ownership = self.ownership
        with self.guarding():
            ownership.take(
                cluster_id=cluster_id,
                node_id=node_id,
                new_directory_id=self.environment.new_id(),
            )
            self.room.prepare()
            self.checkpoints.read()
            self._to_load = self._take_stock()
            ownership.begin_changes()

    def _take_stock(self) -> list[DirectoryEntry]:
        """Which logs there are; what else is there is to be removed or to be left alone."""
        to_load = []
        for entry in list_entries(self.files, self.path):
            path = f"{self.path}/{entry.name}"
            match entry.kind:
                case EntryKind.LOG | EntryKind.FUTURE:
                    to_load.append(entry)
                case EntryKind.DELETED:
                    self.removals.append(Removal(0, path, None))
                case EntryKind.STRAY:
                    _logger.warning("%s is a stray log and left alone", path)
                case EntryKind.FOREIGN:
                    _logger.warning("%s is no log and left alone", path)
                case EntryKind.CLUSTER_METADATA:
                    _logger.info("%s is KRaft's and left alone", path)
        return to_load

    # -- loading ---------------------------------------------------------------------------------

    @property
    def was_clean(self) -> bool:
        return self.ownership.clean_broker_epoch is not None

    @property
    def to_load_count(self) -> int:
        return len(self._to_load)

    def load(self, now_ms: int) -> Iterator[LoadProgress]:
        """Open all logs, one in each step of the iteration, so that others can run in between."""
        to_load, self._to_load = self._to_load, []
        for done, entry in enumerate(to_load):
            if entry.partition is not None:
                yield LoadProgress(done, len(to_load), entry.partition, not self.was_clean)
                with self.guarding():
                    self._load_entry(entry, entry.partition, now_ms)
        with self.guarding():
            _run(self.plan_recovery_points())
            self.ownership.mark_in_use()
            self._forget_deleted()
        self.is_loaded = True

    def _forget_deleted(self) -> None:
        """The cleaner's table is never written as a whole: take out logs that are gone."""
        table = self.checkpoints.cleaner_offsets
        known = self.logs.keys() | self.future_logs.keys() | self.unreadable.keys()
        table.keep(dict.fromkeys(table.offsets.keys() - known))

    def _load_entry(self, entry: DirectoryEntry, partition: TopicPartition, now_ms: int) -> None:
        path = f"{self.path}/{entry.name}"
        if partition in self.logs or partition in self.future_logs:
            _logger.warning("%s is left alone: %s is in this directory twice", path, partition)
            return
        try:
            topic_id = read_topic_id(self.files, path)
            loader = self.loader(partition, path, now_ms)
            log = loader.load()
        except LogStorageError as error:
            raise self.go_offline(str(error).rstrip(".")) from error
        except (CorruptFileError, KafkaError) as error:
            _logger.error("%s cannot be opened and is left alone: %s", path, error)
            self.unreadable[partition] = UnreadableLog(path, str(error))
        else:
            self.recovered.add(loader.scanned_bytes, loader.cut_bytes)
            self.adopt(log, topic_id, is_future=entry.kind is EntryKind.FUTURE)

    def loader(self, partition: TopicPartition, path: str, now_ms: int) -> LogLoader:
        """What opens a log of this directory, or makes one."""
        checkpoints = self.checkpoints
        recovery_points = checkpoints.recovery_points
        return LogLoader(
            partition,
            path,
            self.environment.config_of(partition.topic),
            self.files,
            self.environment.handles,
            now_ms=now_ms,
            is_clean=self.was_clean,
            recovery_point=recovery_points.offsets.get(partition, 0),
            log_start_offset=checkpoints.log_starts.offsets.get(partition, 0),
            producer_id_expiration_ms=self.environment.producer_id_expiration_ms,
            random_source=self.environment.random_source,
            # A log that has no entry in a table of ours was made after it was written.
            gaps_are_losses=self.ownership.was_in_use and recovery_points.is_known,
            keep_recovery_point=partial(self._keep, recovery_points, partition),
            keep_log_start=partial(self._keep, checkpoints.log_starts, partition),
        )

    def adopt(self, log: PartitionLog, topic_id: uuid.UUID | None, *, is_future: bool) -> None:
        """The log is one of this directory's from now on."""
        high_watermark = self.checkpoints.high_watermarks.offsets.get(log.partition)
        if high_watermark is not None:
            log.raise_high_watermark(high_watermark)
        (self.future_logs if is_future else self.logs)[log.partition] = log
        if topic_id is not None:
            self.topic_ids[log.partition] = topic_id

    def all_logs(self) -> list[PartitionLog]:
        return [*self.logs.values(), *self.future_logs.values()]

    def _keep(self, table: CheckpointTable, partition: TopicPartition, offset: int) -> None:
        with self.guarding():
            table.keep({partition: offset})

    # -- checkpoints -----------------------------------------------------------------------------

    def plan_recovery_points(self) -> CheckpointWrite | None:
        return self.checkpoints.plan_recovery_points(self.all_logs(), self.unreadable)

    def plan_high_watermarks(self) -> CheckpointWrite | None:
        return self.checkpoints.plan_high_watermarks(self.all_logs(), self.unreadable)

    def plan_log_starts(self) -> CheckpointWrite | None:
        return self.checkpoints.plan_log_starts(self.all_logs(), self.unreadable)

    # -- closing ---------------------------------------------------------------------------------

    def close_log(self, log: PartitionLog) -> None:
        """Leave a log durable and closed; this may run in a thread, as nobody uses it any more."""
        try:
            log.close()
        except (LogStorageError, OSError) as error:
            self.go_offline(f"{log.partition} could not be closed: {error}".rstrip("."))

    def close(self, broker_epoch: int) -> None:
        """All logs are closed: write down that they are durable, and let go of the directory.

        A directory that was not loaded to the end stays as unclean as it was, and so do its
        checkpoints, which hold what the remaining logs need.
        """
        for removal in self.removals:
            if removal.log is not None:
                removal.log.close()
        try:
            if self.is_loaded and self.is_online:
                with self.guarding():
                    _run(self.plan_recovery_points())
                    _run(self.plan_log_starts())
                    _run(self.plan_high_watermarks())
                    # A log that could not be opened was perhaps not recovered either.
                    if not self.unreadable:
                        self.ownership.mark_clean(broker_epoch)
        except LogStorageError as error:
            _logger.error("%s was not shut down cleanly: %s", self.path, error)
        finally:
            self.ownership.release()


def _run(write: CheckpointWrite | None) -> None:
    if write is not None:
        write.run()
