"""Telling the operator, once, that a disk refuses writes, and once that it takes them again.

Clients hear of every failed append; the log must not have a line for each. A full disk refuses
appends for hours, to thousands of partitions: that is one line for its directory.
"""

from __future__ import annotations

import logging
import os

from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog

_logger = logging.getLogger(__name__)


class WriteFailures:
    """The log directories that refused the last append; shared by a broker's partitions."""

    def __init__(self) -> None:
        self.directories: set[str] = set()

    def failed(self, log: PartitionLog, error: LogStorageError) -> None:
        directory = os.path.dirname(log.directory)
        if directory not in self.directories:
            self.directories.add(directory)
            _logger.error("%s takes no appends: %s Producers are told.", directory, error)

    def succeeded(self, log: PartitionLog) -> None:
        directory = os.path.dirname(log.directory)
        if directory in self.directories:
            self.directories.discard(directory)
            _logger.warning("%s takes appends again.", directory)
