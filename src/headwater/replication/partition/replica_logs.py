"""The logs of this broker's replicas: found when it starts, made and deleted as the image says.

Whatever waits for the disk does so in a thread. A log that cannot be had is remembered with the
reason, for whoever asks for the partition. Then nothing else takes its place: an empty log in
another directory would pass for the lost one, and its broker for an in-sync replica. Only where
there was merely no room for a new log, or no descriptor, is it made later.

A log that is found and is not this broker's to serve is set aside as a stray: its topic was deleted
or its partition given to others while this broker was away. Nobody deletes it, for it may be all
that is left.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.cluster.image.image import TopicImage
from headwater.storage.directories.directory_room import NO_ROOM_ERRORS
from headwater.storage.directories.log_creation import LogCreation, set_aside
from headwater.storage.directories.log_directories import LogDirectories, NoLogDirectoryError
from headwater.storage.errors import InconsistentTopicIdError, LogStorageError, is_exhaustion
from headwater.storage.partition_log import PartitionLog

_logger = logging.getLogger(__name__)


class _NoRoomError(LogStorageError):
    """The disk of a log that is to be made is full, or the process has too many files open."""


class ReplicaLogs:
    """Its owner is `Partitions`."""

    def __init__(
        self, directories: LogDirectories, clock: Clock, run_in_thread: RunInThread
    ) -> None:
        self._directories = directories
        self._clock = clock
        self._run_in_thread = run_in_thread
        #: Why a partition has no log here.
        self.failures: dict[TopicPartition, KafkaError] = {}

    def has_failed(self, partition: TopicPartition) -> bool:
        """Whether its log cannot be had, for another reason than that there is no room yet."""
        failure = self.failures.get(partition)
        return failure is not None and not isinstance(failure, _NoRoomError)

    def has_no_room(self, partition: TopicPartition) -> bool:
        return isinstance(self.failures.get(partition), _NoRoomError)

    async def open(
        self, topic: TopicImage, partitions: Iterable[TopicPartition], *, is_new: bool
    ) -> dict[TopicPartition, PartitionLog]:
        """The logs of partitions, found or made; those whose disk fails are left out."""
        logs: dict[TopicPartition, PartitionLog] = {}
        creations: list[LogCreation] = []
        now_ms = self._clock.wall_ms()
        for partition in partitions:
            try:
                log = self._find(partition, topic.topic_id)
                if log is not None:
                    logs[partition] = log
                    continue
                creations.append(
                    self._directories.begin_creation(
                        partition, topic.topic_id, now_ms, is_new=is_new, begun=creations
                    )
                )
            except KafkaError as error:
                self.failures[partition] = error
            except NoLogDirectoryError as error:
                self.failures[partition] = LogStorageError(str(error))
        if creations:
            errors = await self._run_in_thread(lambda: _run_creations(creations))
            for creation in creations:
                failure = errors.get(creation.partition)
                if failure is None:
                    logs[creation.partition] = creation.complete()
                else:
                    self._creation_failed(creation, failure)
        for partition in logs:
            self.failures.pop(partition, None)
        return logs

    def _creation_failed(self, creation: LogCreation, failure: OSError) -> None:
        if failure.errno in NO_ROOM_ERRORS:
            self.failures[creation.partition] = _NoRoomError(
                f"There is no room for {creation.partition} on its disk."
            )
        elif is_exhaustion(failure):
            self.failures[creation.partition] = _NoRoomError(
                f"{creation.partition} could not be made just now: {failure.strerror}."
            )
        else:
            self.failures[creation.partition] = creation.directory.fail(failure)

    def _find(self, partition: TopicPartition, topic_id: uuid.UUID) -> PartitionLog | None:
        log = self._directories.find(partition)
        if log is None:
            return None
        try:
            self._directories.check_topic_id(partition, topic_id)
        except InconsistentTopicIdError as error:
            directory = self._directories.directory_of(partition)
            if directory is None:
                raise
            path = set_aside(directory, log)
            _logger.warning("%s It was set aside as %s.", error, path)
            return None
        return log

    def set_strays_aside(self, is_served: Callable[[TopicPartition], bool]) -> None:
        """Find the logs that are not to be served."""
        for log in list(self._directories):
            partition = log.partition
            if is_served(partition):
                continue
            directory = self._directories.directory_of(partition)
            if directory is None or partition not in directory.topic_ids:
                _logger.warning(
                    "%s belongs to no topic that the cluster knows; it is kept", partition
                )
                continue
            try:
                path = set_aside(directory, log)
            except LogStorageError as error:
                _logger.error("%s", error)
            else:
                _logger.warning(
                    "%s is no longer on this broker; its log is kept as %s", partition, path
                )

    async def delete(self, partitions: Collection[TopicPartition]) -> None:
        """Have logs deleted; returns when that is durable."""
        for deletion in self._directories.begin_deletion(partitions, self._clock.wall_ms()):
            try:
                await self._run_in_thread(deletion.run)
            except OSError as error:
                _logger.error("%s", deletion.directory.fail(error))


def _run_creations(creations: list[LogCreation]) -> dict[TopicPartition, OSError]:
    """In a thread: make logs, and say which could not be made."""
    errors: dict[TopicPartition, OSError] = {}
    for creation in creations:
        try:
            creation.run()
        except OSError as error:
            errors[creation.partition] = error
    return errors
