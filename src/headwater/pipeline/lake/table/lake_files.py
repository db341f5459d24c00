"""The operations on files that a lake table is made of, and the promises of each.

All that a table writes goes through here, so that tests can run it on a disk that stops after any
operation and forgets what was not forced to it. Local and mounted POSIX file systems are supported
(ext4, xfs, btrfs, APFS, NFS from version 3 on): what is needed of them is that `link` fails if its
target exists, in one step for all machines, and that `fsync` means it. Object stores do not have
that and are refused where a table is opened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO


class LakeFiles:
    """The file system of this machine. Has no state."""

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def source(self, path: str) -> Any:
        """What Parquet's readers open."""
        return path

    def names(self, directory: str) -> list[str]:
        """What lies in a directory; nothing if there is none."""
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []

    def walk(self, directory: str) -> Iterator[str]:
        """All files below a directory, by path."""
        for parent, _, names in os.walk(directory):
            yield from (os.path.join(parent, name) for name in names)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size_bytes(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_s(self, path: str) -> float:
        return os.stat(path).st_mtime

    @contextlib.contextmanager
    def output(self, path: str) -> Iterator[BinaryIO]:
        """A new file to write into; its bytes are on disk at the end, its name not yet."""
        with open(path, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def link(self, source: str, target: str) -> None:
        """Give a file a second name in one step; `FileExistsError` if that name is taken."""
        os.link(source, target)

    def unlink(self, path: str) -> None:
        """Remove a name, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_directory(self, path: str) -> None:
        """Make a directory, if it is not there; its parent must be."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to disk."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def make_directories(self, root: str, relative: str) -> str:
        """Make the directories of a relative path below `root`, so that they survive a crash.

        Each level is forced to disk, also one that was there: whoever made it may have died
        before doing so. What is missing above `root` is made too.
        """
        if not self.exists(root):
            parent, name = os.path.split(root)
            self.make_directories(parent, name)
        path = root
        for part in relative.split("/") if relative else []:
            parent, path = path, os.path.join(path, part)
            self.make_directory(path)
            self.sync_directory(parent)
        return path
