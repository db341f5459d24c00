"""The transaction index: a segment's aborted transactions, in Kafka's `.txnindex` files.

    int16 version, 0
    int64 producer id
    int64 first offset of the transaction
    int64 last offset: that of its abort marker, which is in this segment
    int64 last stable offset at the time of the abort

Who reads committed data only is told the aborted transactions that overlap what it fetched, and
drops their records. Entries stand in the order of their markers, while first offsets may lie in
earlier segments and in any order. What ends a search is the last stable offset: no transaction was
undecided before it, so no later entry begins before it either. A search that no entry ends goes on
in the next segment.

Most segments have no aborted transaction, so the file is created with the first one. Like the other
indexes it can be rebuilt from the log, and is after an unclean stop.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from headwater.base.checks import check
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import CachedFile, HandleCache
from headwater.storage.errors import CorruptIndexError

VERSION: Final = 0
ENTRY: Final = struct.Struct(">hqqqq")
ENTRY_SIZE: Final = ENTRY.size
#: Read at a time: a search usually ends within the first entries.
_CHUNK_ENTRIES: Final = 128


class AbortedTransaction(NamedTuple):
    """One entry."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTransactions(NamedTuple):
    """What a search found, and whether later segments can add nothing to it."""

    transactions: list[AbortedTransaction]
    is_complete: bool


class TransactionIndex:
    """The index of one segment. Its owner is the segment."""

    def __init__(self, files: FileSystem, handles: HandleCache, path: str) -> None:
        self.path = path
        self._files = files
        self._handles = handles
        self._file: CachedFile | None = handles.open(path) if files.exists(path) else None
        self._name_is_durable = self._file is not None

    # -- reading ---------------------------------------------------------------------------------

    @property
    def entry_count(self) -> int:
        """A torn tail, which an unclean stop can leave, is no entry."""
        return self._file.size() // ENTRY_SIZE if self._file is not None else 0

    def __iter__(self) -> Iterator[AbortedTransaction]:
        """All entries, in the order of their abort markers."""
        count = self.entry_count
        for first in range(0, count, _CHUNK_ENTRIES):
            yield from self._read(first, min(_CHUNK_ENTRIES, count - first))

    def _read(self, first: int, count: int) -> list[AbortedTransaction]:
        if self._file is None:
            return []
        entries = []
        data = self._file.read_at(first * ENTRY_SIZE, count * ENTRY_SIZE)
        for version, *fields in ENTRY.iter_unpack(data):
            if version != VERSION:
                raise CorruptIndexError(
                    f"{self.path}: an entry has version {version}, and only {VERSION} is known."
                )
            entries.append(AbortedTransaction(*fields))
        return entries

    def collect_aborted(self, fetch_offset: int, upper_bound_offset: int) -> AbortedTransactions:
        """The transactions that have records in [`fetch_offset`, `upper_bound_offset`)."""
        found = []
        for entry in self:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return AbortedTransactions(found, True)
        return AbortedTransactions(found, False)

    def sanity_check(self, base_offset: int) -> None:
        """Raise `CorruptIndexError` if this cannot be the index of the segment at `base_offset`."""
        if self._file is not None and self._file.size() % ENTRY_SIZE:
            raise CorruptIndexError(
                f"{self.path}: {self._file.size()} bytes are no whole number of entries."
            )
        previous_offset = base_offset - 1
        for entry in self:
            if not entry.first_offset <= entry.last_offset > previous_offset:
                raise CorruptIndexError(
                    f"{self.path}: {entry} does not follow offset {previous_offset}."
                )
            previous_offset = entry.last_offset

    # -- writing ---------------------------------------------------------------------------------

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry, whose marker must stand behind those of all others."""
        file = self.create()
        count = self.entry_count
        for last in self._read(count - 1, 1) if count else ():
            check(
                entry.last_offset > last.last_offset,
                "%s: %s does not stand behind %s",
                self.path,
                entry,
                last,
            )
        file.write_at(count * ENTRY_SIZE, ENTRY.pack(VERSION, *entry))

    def create(self) -> CachedFile:
        """See to it that there is a file, if only an empty one."""
        if self._file is None:
            self._file = self._handles.open(self.path, create=True)
        return self._file

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions that were aborted at `offset` or later."""
        for number, entry in enumerate(self):
            if entry.last_offset >= offset:
                self._cut(number)
                return

    def reset(self) -> None:
        """Remove all entries."""
        self._cut(0)

    def _cut(self, entry_count: int) -> None:
        if self._file is not None:
            self._file.truncate(entry_count * ENTRY_SIZE)

    def sync(self) -> None:
        """Make the entries durable, and the file's name if this object brought it about."""
        if self._file is not None:
            self._file.sync()
            if not self._name_is_durable:
                self._files.sync_dir(os.path.dirname(self.path))
                self._name_is_durable = True

    def moved_to(self, path: str) -> None:
        """The file, if there is one, has been renamed."""
        self.path = path
        if self._file is not None:
            self._file.moved_to(path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
