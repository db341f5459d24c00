"""Files that only grow, with a buffer in front of each and one bound for all buffers.

The owner of the index appends and writes; threads only read what was written before they started,
and sync. No file is kept open. What a file has in its first `size` bytes never changes until it is
removed: a name is never used for another file, so that whoever holds an old name can do no harm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator
from heapq import nlargest
from itertools import count
from typing import Final

from headwater.storage.disk.files import FileSystem

#: Beyond that, buffers are written until there is less.
BUFFER_BYTES_MAX: Final = 1 << 20
#: How many are written at once, so that nobody waits for all of them.
_SPILLED_FILES: Final = 16
#: How much is read at once: about 4 MB, and whole entries of 24 or 32 bytes.
CHUNK_BYTES: Final = 96 * 43_690


class AppendFile:
    """A file: what was written to it, and what will be."""

    __slots__ = ("buffer", "is_dirty", "name", "size")

    def __init__(self, name: str, size: int = 0) -> None:
        self.name = name
        #: How many bytes were written.
        self.size = size
        self.buffer = bytearray()
        #: Whether something was written since the last sync.
        self.is_dirty = False

    @property
    def size_bytes(self) -> int:
        """With what is not written yet."""
        return self.size + len(self.buffer)


class AppendFiles:
    """The files of one index, by their names in its directory."""

    def __init__(self, files: FileSystem, directory: str, numbers: Iterator[int]) -> None:
        self.files = files
        self.directory = directory
        self.by_name: dict[str, AppendFile] = {}
        self.buffered_bytes = 0
        #: Whether there are names that may not be durable.
        self.has_new_names = False
        #: Names of files that are not needed any more, until a checkpoint is without them.
        self.retired: list[str] = []
        self._numbers = numbers

    def create(self, prefix: str, suffix: str) -> AppendFile:
        """A new file; nothing is on disk until something is written to it."""
        return self.adopt(AppendFile(f"{prefix}-{next(self._numbers)}{suffix}"))

    def adopt(self, file: AppendFile) -> AppendFile:
        """Take a file over, from disk or from a thread that wrote it."""
        self.by_name[file.name] = file
        self.buffered_bytes += len(file.buffer)
        self.has_new_names |= file.is_dirty
        return file

    def retire(self, file: AppendFile) -> None:
        """Let go of a file, and of what is not written; on disk an old checkpoint may need it."""
        self.by_name.pop(file.name)
        self.buffered_bytes -= len(file.buffer)
        self.retired.append(file.name)

    def remove_retired(self, needed: Container[str]) -> None:
        """Remove the retired files that no checkpoint needs."""
        for name in self.retired:
            if name not in needed:
                self.remove(name)
        self.retired = [name for name in self.retired if name in needed]

    def append(self, file: AppendFile, data: bytes) -> None:
        """Nothing is written before `spill`, so this never fails."""
        file.buffer += data
        self.buffered_bytes += len(data)

    def spill(self) -> None:
        """Write the largest buffers, if there is too much in all of them."""
        if self.buffered_bytes > BUFFER_BYTES_MAX:
            files = self.by_name.values()
            for file in nlargest(_SPILLED_FILES, files, key=lambda each: len(each.buffer)):
                self.write(file)

    def write_all(self) -> None:
        for file in self.by_name.values():
            self.write(file)

    def write(self, file: AppendFile) -> None:
        if not file.buffer:
            return
        opened = self.files.open(self.path(file.name), create=True)
        try:
            if file.size == 0:
                self.has_new_names = True
            file.is_dirty = True
            # After an error this is written again, to the same place.
            opened.write_at(file.size, file.buffer)
        finally:
            opened.close()
        file.size += len(file.buffer)
        self.buffered_bytes -= len(file.buffer)
        file.buffer = bytearray()

    def chunks(self, file: AppendFile) -> Iterator[bytes]:
        """All of a file, in pieces."""
        return read_chunks(self.files, self.path(file.name), file.size, bytes(file.buffer))

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.files.remove(self.path(name))


def read_chunks(files: FileSystem, path: str, size: int, rest: bytes) -> Iterator[bytes]:
    """The first `size` bytes of a file in pieces, and then the rest, which is not in it yet."""
    if size > 0:
        file = files.open(path)
        try:
            for at in range(0, size, CHUNK_BYTES):
                chunk = file.read_at(at, min(CHUNK_BYTES, size - at))
                if len(chunk) < min(CHUNK_BYTES, size - at):
                    raise OSError(f"{path} is shorter than the {size} bytes that were written.")
                yield chunk
        finally:
            file.close()
    if rest:
        yield rest


def next_numbers(names: list[str]) -> Iterator[int]:
    """Numbers for new files, above those of all that there are."""
    numbers = [name.split(".")[0].rpartition("-")[2] for name in names]
    return count(1 + max((int(number) for number in numbers if number.isdigit()), default=0))
