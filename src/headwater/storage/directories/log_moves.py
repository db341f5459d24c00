"""The logs of a broker that are on their way from one of its directories to another.

See `future_log` for how one moves. A move that was under way when the broker stopped goes on after
the next start. Whoever holds a partition's log hears from `on_moved` when another object serves it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from headwater.base.ids import TopicPartition
from headwater.storage.directories.future_log import FutureLog
from headwater.storage.directories.log_creation import LogCreation, LogDeletion, set_aside
from headwater.storage.directories.log_directory import LogDirectory
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from headwater.storage.directories.log_directories import LogDirectories

_logger = logging.getLogger(__name__)


class LogMoves:
    """All moves under way. Its owner is that of the directories."""

    def __init__(self, directories: LogDirectories) -> None:
        self.on_moved: Callable[[PartitionLog], None] | None = None
        self._directories = directories
        self._moves: dict[TopicPartition, FutureLog] = {}

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[FutureLog]:
        return iter(list(self._moves.values()))

    def get(self, partition: TopicPartition) -> FutureLog | None:
        return self._moves.get(partition)

    def is_under_way(self, move: FutureLog) -> bool:
        """Whether it can go on: it was not given up, and both disks work."""
        works = move.source.is_online and move.target.is_online
        return works and self._moves.get(move.log.partition) is move

    def start(self, partition: TopicPartition, path: str, now_ms: int) -> FutureLog | None:
        """Begin to move a log to the directory at `path`; None if it is there already."""
        directories = self._directories
        target, source = directories.directory_at(path), directories.directory_of(partition)
        current = directories.find(partition)
        if source is None or current is None:
            raise LogStorageError(f"{partition} has no log here that could move.")
        move = self._moves.get(partition)
        if move is not None and move.target is target:
            return move
        self.cancel(partition, now_ms)
        if source is target:
            return None
        topic_id = source.topic_ids.get(partition)
        creation = LogCreation.begin(target, partition, topic_id, now_ms, is_future=True)
        with target.guarding():
            creation.run()
        return self._add(FutureLog(current, source, creation.complete(), target))

    def cancel(self, partition: TopicPartition, now_ms: int) -> None:
        """Give up a move, if there is one; the copy is deleted."""
        move = self._moves.pop(partition, None)
        if move is not None and move.target.is_online:
            deletion = LogDeletion.begin(move.target, [partition], now_ms)
            with move.target.guarding():
                deletion.run()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These logs are being deleted, and their copies with them."""
        for partition in partitions:
            self._moves.pop(partition, None)

    def complete(self, move: FutureLog, now_ms: int) -> PartitionLog:
        """Let the copy serve. The old log's object serves no more."""
        log = move.take_over(now_ms)
        del self._moves[log.partition]
        if self.on_moved is not None:
            self.on_moved(log)
        return log

    def resume(self, now_ms: int) -> None:
        """Go on with the copies that were found when the logs were loaded."""
        for directory in self._directories.online():
            for log in list(directory.future_logs.values()):
                self._resume(log, directory, now_ms)

    def _resume(self, log: PartitionLog, target: LogDirectory, now_ms: int) -> None:
        source = self._directories.directory_of(log.partition)
        if source is None and all(each.is_online for each in self._directories.directories):
            # Its log was deleted, or lost with its disk. In case of the latter it is kept.
            path, kept = log.directory, set_aside(target, log)
            _logger.warning("%s is the copy of a log that is gone, now kept as %s", path, kept)
            return
        if source is None or not source.is_online:
            return
        topic_ids = {each.topic_ids.get(log.partition) for each in (source, target)}
        if len(topic_ids - {None}) > 1:
            path, kept = log.directory, set_aside(target, log)
            _logger.warning("%s is the copy of another topic's log, now kept as %s", path, kept)
            return
        move = FutureLog(source.logs[log.partition], source, log, target)
        self._add(move).follow_truncation(now_ms)

    def _add(self, move: FutureLog) -> FutureLog:
        self._moves[move.log.partition] = move
        return move
