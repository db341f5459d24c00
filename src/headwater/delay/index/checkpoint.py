"""The checkpoint of an index: which files there are, and up to which offset they are complete.

    89abcdef            CRC-32 of what follows, as 8 digits
    {"version": 1, ...} JSON

Everything in front of `offset` has been told to the index and is in the files, in their first bytes
as far as the checkpoint counts them. What lies behind these bytes came later, and whoever opens the
index is told of it again. Files that are not named in it are nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

from headwater.delay.index.append_files import AppendFile, AppendFiles
from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically
from headwater.wire.delayed.copies import OrderKey

NAME: Final = "delays.checkpoint"
VERSION: Final = 2


class HomeRow(NamedTuple):
    name: str
    size: int
    start_ms: int
    end_ms: int
    #: How many wait there.
    waiting: int


class IdsRow(NamedTuple):
    name: str
    size: int
    prefix: int


class IndexCheckpoint(NamedTuple):
    offset: int
    #: What had been delivered in front of `offset`.
    watermark: OrderKey
    #: What the owner of the index wants to find again.
    state: Mapping[str, Any]
    homes: tuple[HomeRow, ...]
    ids: tuple[IdsRow, ...]

    def sizes(self) -> dict[str, int]:
        """The files, and how much of each counts."""
        homes = {row.name: row.size for row in self.homes}
        return homes | {row.name: row.size for row in self.ids}


def encode_checkpoint(checkpoint: IndexCheckpoint) -> bytes:
    text = json.dumps({"version": VERSION, **checkpoint._asdict()}, separators=(",", ":")).encode()
    return b"%08x\n%b" % (zlib.crc32(text), text)


def decode_checkpoint(data: bytes) -> IndexCheckpoint | None:
    """None if it is damaged, or of another version: an index without it is made anew."""
    checksum, _, text = data.partition(b"\n")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    fields = json.loads(text)
    if fields.pop("version") != VERSION:
        return None
    return IndexCheckpoint(
        fields["offset"],
        OrderKey(*fields["watermark"]),
        fields["state"],
        tuple(HomeRow(*row) for row in fields["homes"]),
        tuple(IdsRow(*row) for row in fields["ids"]),
    )


def read_checkpoint(files: FileSystem, directory: str) -> IndexCheckpoint | None:
    """The checkpoint in a directory, if it has one that can be trusted."""
    path = f"{directory}/{NAME}"
    return decode_checkpoint(read_bytes(files, path)) if files.exists(path) else None


class CheckpointPlan:
    """What must be synced before a checkpoint may be written, and the checkpoint."""

    def __init__(self, pool: AppendFiles, checkpoint: IndexCheckpoint) -> None:
        self.checkpoint = checkpoint
        self.names = frozenset(checkpoint.sizes())
        # From now on, what is written needs another sync.
        self._dirty: list[AppendFile] = [file for file in pool.by_name.values() if file.is_dirty]
        for file in self._dirty:
            file.is_dirty = False
        self._has_new_names, pool.has_new_names = pool.has_new_names, False
        self._pool = pool
        self._paths = [pool.path(file.name) for file in self._dirty]
        self._directory = pool.directory
        self._data = encode_checkpoint(checkpoint)
        self._is_cancelled = False
        self._writing = Lock()

    def run(self) -> None:
        """Sync what it names, then write it; in any thread."""
        files = self._pool.files
        try:
            for path in self._paths:
                file = files.open(path)
                try:
                    file.sync()
                finally:
                    file.close()
            if self._has_new_names:
                files.sync_dir(self._directory)
        except OSError:
            if self._is_cancelled:  # The files may be gone.
                return
            raise
        with self._writing:
            if not self._is_cancelled:
                write_atomically(files, f"{self._directory}/{NAME}", self._data)

    def cancel(self) -> None:
        """It is not written from now on; if it is being written, wait until it is."""
        with self._writing:
            self._is_cancelled = True

    def give_back(self) -> None:
        """It was not written: what it was to sync is not."""
        for file in self._dirty:
            file.is_dirty = True
        self._pool.has_new_names |= self._has_new_names
