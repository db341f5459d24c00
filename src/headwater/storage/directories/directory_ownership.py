"""Whose a log directory is, and in what state its owner left it.

Four files at the top of a directory tell that. `.lock` is locked while a broker has the directory
open. `meta.properties` names the broker and the cluster that it belongs to. `.kafka_cleanshutdown`
is there after a stop that left everything durable. `.headwater` is there while Headwater runs in
the directory, and after a stop of ours that was not clean: then a gap between segments behind the
recovery point is a loss, whereas in a directory that Kafka left it may come from compaction. It
holds the boot id of the machine: as long as that is the same, what a process wrote before it was
killed is still there, synced or not.
"""

from __future__ import annotations

import os
import uuid
from typing import Final

from headwater.base.checks import check
from headwater.storage.directories.broker_metadata import (
    BrokerMetadata,
    read_broker_metadata,
    write_broker_metadata,
)
from headwater.storage.directories.clean_shutdown import CleanShutdownMarker
from headwater.storage.disk.files import FileSystem, Lock, read_bytes, write_atomically

LOCK_FILE: Final = ".lock"
IN_USE_MARKER: Final = ".headwater"


class LogDirectoryInUseError(Exception):
    """Another broker has the directory open."""


class DirectoryOwnership:
    """This broker's hold on one log directory."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.directory_id: uuid.UUID | None = None
        #: The broker epoch of the clean shutdown that came before, None if there was none.
        self.clean_broker_epoch: int | None = None
        #: Whether the last to leave without a clean shutdown was Headwater.
        self.was_in_use = False
        #: The boot of the machine in which the owner last ran, empty if that is not known.
        self.last_boot_id = ""
        self._files = files
        self._path = path
        self._clean_marker = CleanShutdownMarker(files, path)
        self._in_use_path = f"{path}/{IN_USE_MARKER}"
        self._lock: Lock | None = None

    def take(self, *, cluster_id: str, node_id: int, new_directory_id: uuid.UUID) -> None:
        """Lock the directory, making it if need be, and see that it is ours."""
        check(self._lock is None, "%s is taken already", self._path)
        make_durable_dir(self._files, self._path)
        try:
            self._lock = self._files.lock(f"{self._path}/{LOCK_FILE}")
        except BlockingIOError:
            raise LogDirectoryInUseError(
                f"The log directory {self._path} is in use by another broker: "
                "stop that one, or give this one another log.dirs."
            ) from None
        metadata = read_broker_metadata(self._files, self._path)
        if metadata is not None:
            metadata.check_owner(self._path, cluster_id=cluster_id, node_id=node_id)
            self.directory_id = metadata.directory_id
        self.directory_id = self.directory_id or new_directory_id
        complete = BrokerMetadata(cluster_id, node_id, self.directory_id)
        if metadata != complete:
            write_broker_metadata(self._files, self._path, complete)
        self.clean_broker_epoch = self._clean_marker.read()
        self.was_in_use = self._files.exists(self._in_use_path)
        if self.was_in_use:
            self.last_boot_id = read_bytes(self._files, self._in_use_path).decode(errors="replace")

    def begin_changes(self) -> None:
        """From now on a stop is unclean until `release` says otherwise."""
        self._clean_marker.remove()

    def mark_in_use(self) -> None:
        """All logs are recovered: what a crash does to them from now on, it does to ours."""
        if not self._files.exists(self._in_use_path):
            write_atomically(self._files, self._in_use_path, b"")

    def note_boot(self, boot_id: str) -> None:
        """The cluster knows what this broker may lack: from now on only a boot can add to that."""
        write_atomically(self._files, self._in_use_path, boot_id.encode())

    def mark_clean(self, broker_epoch: int) -> None:
        """Everything in the directory is durable."""
        self._clean_marker.write(broker_epoch)
        if self._files.exists(self._in_use_path):
            self._files.remove(self._in_use_path)
            self._files.sync_dir(self._path)

    def release(self) -> None:
        """Let others have the directory."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def make_durable_dir(files: FileSystem, path: str) -> None:
    """Make a directory with its parents, and their names durable."""
    missing = []
    while path and not files.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    if missing:
        files.make_dir(missing[0])
        for made in missing:
            files.sync_dir(os.path.dirname(made) or ".")
