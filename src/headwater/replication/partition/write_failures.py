"""Disks that refuse writes: producers hear of each, the operator once.

Clients hear of every failed append; the log must not have a line for each. A full disk refuses
appends for hours, to thousands of partitions: that is one line for its directory. While it is full,
appends are refused without trying: what room there is has other uses (`DirectoryRoom`), and a small
batch that fits where a large one did not would only end the story for a moment.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from headwater.storage.directories.directory_room import NO_ROOM_ERRORS, DirectoryRoom
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog

_logger = logging.getLogger(__name__)


class WriteFailures:
    """The log directories that refused the last append; shared by a broker's partitions."""

    def __init__(self, rooms: Mapping[str, DirectoryRoom] | None = None) -> None:
        """`rooms` has the room of each log directory by its path."""
        self._rooms = dict(rooms or {})
        self.directories: set[str] = set()
        for directory, room in self._rooms.items():
            if room.is_short:
                self.directories.add(directory)
                _logger.error(
                    "%s takes no appends: its disk is full. Producers are told.", directory
                )

    def check_room(self, log: PartitionLog) -> None:
        """Raise for a directory that was full, unless it has room by now."""
        directory = os.path.dirname(log.directory)
        room = self._rooms.get(directory)
        if room is not None and room.is_short and not room.has_room():
            raise LogStorageError(f"{log.partition} could not be written: its disk is full.")

    def failed(self, log: PartitionLog, error: LogStorageError) -> None:
        directory = os.path.dirname(log.directory)
        cause = error.__cause__
        room = self._rooms.get(directory)
        if room is not None and isinstance(cause, OSError) and cause.errno in NO_ROOM_ERRORS:
            room.ran_out()
        if directory not in self.directories:
            self.directories.add(directory)
            _logger.error("%s takes no appends: %s Producers are told.", directory, error)

    def succeeded(self, log: PartitionLog) -> None:
        directory = os.path.dirname(log.directory)
        if directory in self.directories:
            self.directories.discard(directory)
            _logger.warning("%s takes appends again.", directory)
