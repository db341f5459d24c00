"""A disk that is never waited for: files as usual, but nothing is synced.

For brokers of tests, whose data is gone with the test anyway. What such a broker acknowledges
survives the end of its process, and no power failure.
"""

from __future__ import annotations

import os

from headwater.storage.disk.disk_files import DiskFile, DiskFiles


class UnsyncedFile(DiskFile):
    """A file of the operating system whose content may wait in memory."""

    __slots__ = ()

    def sync(self) -> None:
        self.fileno()  # A closed file still says so.


class UnsyncedFiles(DiskFiles):
    """The `FileSystem` of the operating system without its waiting."""

    def open(self, path: str, *, create: bool = False) -> UnsyncedFile:
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDWR
        return UnsyncedFile(path, os.open(path, flags, 0o644))

    def sync_dir(self, path: str) -> None:
        os.stat(path)  # A directory that is missing still says so.
