"""A metadata store's journal on a simulated disk: entries appended to one file, each synced.

The embedded store's own journal is SQLite's, which opens real files. Here the same contract is kept
on the seam that the simulator controls, so that a power loss tears the metadata as it tears logs.
An entry is its length, a checksum and the rows of one commit; loading replays them and cuts off
what a power loss left behind the last whole entry.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from headwater.base.checks import require
from headwater.base.threads import RunInThread
from headwater.cluster.store.embedded.journal import Changes, JournalContent, NodeRow
from headwater.cluster.store.errors import StoreWriteError
from headwater.storage.disk.files import File, FileSystem

FILE_NAME: Final = "metadata.journal"
_HEADER: Final = struct.Struct(">II")


class FileJournal:
    """A `Journal` in the directory `path` of a simulated disk."""

    def __init__(self, files: FileSystem, path: str, run_in_thread: RunInThread) -> None:
        self._files = files
        self._path = path
        self._run_in_thread = run_in_thread
        self._file: File | None = None
        self._end = 0
        self._is_broken = False

    async def load(self) -> JournalContent:
        return await self._run_in_thread(self._load)

    def _load(self) -> JournalContent:
        self._files.make_dir(self._path)
        file = self._file = self._files.open(f"{self._path}/{FILE_NAME}", create=True)
        data = file.read_at(0, file.size())
        rows: dict[str, NodeRow] = {}
        transaction_id = 0
        for entry, end in _whole_entries(data):
            self._end = end
            transaction_id = entry["id"]
            for path, fields in entry["changes"].items():
                if fields is None:
                    rows.pop(path, None)
                else:
                    rows[path] = NodeRow(path, base64.b64decode(fields[0]), *fields[1:])
        # What comes next must not be read as the rest of something that was torn.
        file.truncate(self._end)
        file.sync()
        self._files.sync_dir(self._path)
        self._files.sync_dir(os.path.dirname(self._path) or "/")
        return JournalContent(_parents_first(rows.values()), transaction_id)

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        entry = {
            "id": transaction_id,
            "changes": {
                path: None if row is None else [base64.b64encode(row.data).decode(), *row[2:]]
                for path, row in changes.items()
            },
        }
        payload = json.dumps(entry).encode()
        await self._run_in_thread(
            lambda: self._append(_HEADER.pack(len(payload), zlib.crc32(payload)) + payload)
        )

    def _append(self, data: bytes) -> None:
        file = require(self._file, "the journal is not loaded")
        if self._is_broken:
            raise StoreWriteError("The simulated journal takes no more changes.")
        try:
            file.write_at(self._end, data)
        except OSError as error:
            self._is_broken = not self._cut_back(file)
            raise StoreWriteError(f"The simulated journal cannot be written: {error}") from error
        try:
            file.sync()
        except OSError as error:
            # After a sync that failed nobody knows what is on the disk.
            self._is_broken = True
            raise StoreWriteError(f"The simulated journal cannot be synced: {error}") from error
        self._end += len(data)

    def _cut_back(self, file: File) -> bool:
        """Whether what a failed write left behind is gone for good."""
        try:
            file.truncate(self._end)
            file.sync()
        except OSError:
            return False
        return True

    async def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _whole_entries(data: bytes) -> Iterator[tuple[dict[str, Any], int]]:
    position = 0
    while position + _HEADER.size <= len(data):
        size, checksum = _HEADER.unpack_from(data, position)
        end = position + _HEADER.size + size
        payload = data[position + _HEADER.size : end]
        if size == 0 or len(payload) < size or zlib.crc32(payload) != checksum:
            return
        yield json.loads(payload), end
        position = end


def _parents_first(rows: Iterable[NodeRow]) -> list[NodeRow]:
    return sorted(rows, key=lambda row: row.path.split("/") if row.path != "/" else [])
