"""The clean-shutdown marker: `.kafka_cleanshutdown` in a log directory.

A broker that stops in order flushes its logs and then writes the marker. The next start that finds
it loads the logs as they are; one that does not must take their tails for torn and recover them.
The marker also names the broker epoch that wrote it: by that the cluster can tell that this stop,
and not an earlier one, was clean, so that nothing acknowledged may have been lost.

Both directions must survive a power failure. The marker is written durably after the logs, and it
is removed durably before they change again: a marker that came back would hide a torn tail.

Its content is `{"version":0,"brokerEpoch":7}`; older brokers left the file empty or wrote other
text, which counts as a clean shutdown of an unknown epoch.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically

_logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN_MARKER: Final = ".kafka_cleanshutdown"
VERSION: Final = 0
UNKNOWN_BROKER_EPOCH: Final = -1


class CleanShutdownMarker:
    """The marker of one log directory."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self.path = f"{directory}/{CLEAN_SHUTDOWN_MARKER}"
        self._files = files
        self._directory = directory

    @property
    def exists(self) -> bool:
        """Whether the last shutdown was clean."""
        return self._files.exists(self.path)

    def write(self, broker_epoch: int) -> None:
        """Everything in the directory is flushed: say so, durably."""
        content = {"version": VERSION, "brokerEpoch": broker_epoch}
        data = json.dumps(content, separators=(",", ":")).encode()
        write_atomically(self._files, self.path, data)

    def read(self) -> int | None:
        """The broker epoch of the clean shutdown, None if there was none."""
        try:
            data = read_bytes(self._files, self.path)
        except FileNotFoundError:
            return None
        try:
            content = json.loads(data)
            broker_epoch = content["brokerEpoch"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            _logger.warning("%s does not name a broker epoch: %r", self.path, error)
            return UNKNOWN_BROKER_EPOCH
        return broker_epoch if type(broker_epoch) is int else UNKNOWN_BROKER_EPOCH

    def remove(self) -> None:
        """The directory is about to change: from now on a stop is unclean until said otherwise."""
        if self.exists:
            self._files.remove(self.path)
            self._files.sync_dir(self._directory)
