"""The disk as the tools see it: nothing can be changed through it.

`log dump` and `log verify` run beside a broker, on backups and on files of other users, so they
open everything for reading only and need no more than permission to read. Whatever would change a
file or a directory is refused here, before the operating system is asked.
"""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from headwater.storage.disk.disk_files import DiskFile, DiskFiles, DiskLock
from headwater.storage.disk.file_lock import is_locked_elsewhere


class ReadOnlyFiles(DiskFiles):
    """A `FileSystem` whose files cannot be written and whose directories cannot be changed."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open for reading; with `create` too, an absent file is an error."""
        return DiskFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def make_dir(self, path: str) -> None:
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        _refuse(source)

    def remove(self, path: str) -> None:
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        _refuse(path)

    def sync_dir(self, path: str) -> None:
        _refuse(path)

    def lock(self, path: str) -> DiskLock:
        _refuse(path)

    def is_locked(self, path: str) -> bool:
        """Whether a broker holds the lock file at `path`; asking takes no lock, if that can be."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return is_locked_elsewhere(descriptor)
        finally:
            os.close(descriptor)


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
