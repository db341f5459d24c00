"""A disk in memory for lake tables, that stops at any operation and forgets what was not forced.

Every change counts as an operation. When the disk was told to stop, it raises `Stopped` at that
operation and at all that come later, as for a process that was killed. `after_power_failure` is the
disk as another process finds it then: what was forced to it, and of the rest whatever `keep` says.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from headwater.pipeline.lake.table.lake_files import LakeFiles

Keep = Callable[[], bool]


class Stopped(BaseException):
    """Not an `Exception`, so that nobody takes it for a failure to go on after."""


@dataclass
class _Content:
    data: bytes = b""
    is_forced: bool = False


class LakeDisk(LakeFiles):
    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.operation_count = 0
        self._files: dict[str, _Content] = {}
        self._directories = {"/"}
        # Names that are on disk whatever happens.
        self._forced_files: dict[str, _Content] = {}
        self._forced_directories = {"/"}

    # -- failing ---------------------------------------------------------------------------------

    def stop_in(self, operation_count: int) -> None:
        """Stop after so many operations from now."""
        self.stop_after = self.operation_count + operation_count

    def after_power_failure(self, keep: Keep) -> LakeDisk:
        """What is left; `keep` decides about each change that was not forced."""
        left = LakeDisk()
        for path in sorted(self._directories | self._forced_directories):
            is_there = path in self._forced_directories or keep()
            if is_there and (path == "/" or os.path.dirname(path) in left._directories):
                left._directories.add(path)
        for path in sorted(self._files.keys() | self._forced_files.keys()):
            content = self._forced_files.get(path)
            if self._files.get(path) is not content and keep():
                content = self._files.get(path)
            if content is not None and os.path.dirname(path) in left._directories:
                is_whole = content.is_forced or keep()
                data = content.data if is_whole else content.data[: len(content.data) // 2]
                left._files[path] = _Content(data, True)
        left._forced_files = dict(left._files)
        left._forced_directories = set(left._directories)
        return left

    def _operate(self) -> None:
        if self.stop_after is not None and self.operation_count >= self.stop_after:
            raise Stopped
        self.operation_count += 1

    # -- reading ---------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(path)
        return self._files[path].data

    def source(self, path: str) -> Any:
        return pa.BufferReader(self.read(path))

    def names(self, directory: str) -> list[str]:
        return [
            os.path.basename(path) for path in self._files if os.path.dirname(path) == directory
        ]

    def walk(self, directory: str) -> Iterator[str]:
        return iter([path for path in self._files if path.startswith(f"{directory}/")])

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._directories

    def size_bytes(self, path: str) -> int:
        return len(self.read(path))

    def modified_s(self, path: str) -> float:
        return 0.0

    # -- writing ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def output(self, path: str) -> Iterator[BinaryIO]:
        self._operate()
        if path in self._files:
            raise FileExistsError(path)
        if os.path.dirname(path) not in self._directories:
            raise FileNotFoundError(path)
        content = self._files[path] = _Content()
        buffer = io.BytesIO()
        try:
            yield buffer
        finally:
            content.data = buffer.getvalue()
        self._operate()
        content.is_forced = True

    def link(self, source: str, target: str) -> None:
        self._operate()
        if target in self._files:
            raise FileExistsError(target)
        self._files[target] = self._files[source]

    def unlink(self, path: str) -> None:
        self._operate()
        self._files.pop(path, None)

    def make_directory(self, path: str) -> None:
        self._operate()
        if os.path.dirname(path) not in self._directories:
            raise FileNotFoundError(path)
        self._directories.add(path)

    def sync_directory(self, path: str) -> None:
        self._operate()
        for each in list(self._forced_files):
            if os.path.dirname(each) == path and each not in self._files:
                del self._forced_files[each]
        for each, content in self._files.items():
            if os.path.dirname(each) == path:
                self._forced_files[each] = content
        self._forced_directories |= {
            each for each in self._directories if os.path.dirname(each) == path
        }
