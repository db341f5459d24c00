"""A sorted file of fixed-size entries: what the offset index and the time index share.

An index grows by `write_at` and is searched through a mapping, made on first use, and renewed when
many entries have come since; the few behind the mapping are read with one `pread`. A small index is
never mapped at all. Nothing but the entry count and the last entry is kept on the heap, so memory
stays flat however large segments grow, and descriptors are the handle cache's to bound.

An index is a hint that can always be rebuilt from its log. It is made durable only when its segment
is sealed and flushed; recovery rebuilds the index of every segment that it scans.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import Generic, TypeVar

from headwater.base.checks import check
from headwater.storage.errors import CorruptIndexError
from headwater.storage.handles import CachedFile, CachedMapping, HandleCache

Entry = TypeVar("Entry", bound=tuple[int, int])

#: So many entries may lie behind the mapping before it is renewed: 8 KiB of an offset index.
UNMAPPED_ENTRIES_MAX = 1024


class IndexFile(ABC, Generic[Entry]):
    """Entries of two integers, sorted by both; subclasses say how they are stored."""

    entry_struct: struct.Struct

    def __init__(
        self, handles: HandleCache, path: str, base_offset: int, size_max_bytes: int
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self._handles = handles
        self._entry_size = self.entry_struct.size
        self._entry_count_max = size_max_bytes // self._entry_size
        self.was_missing = not handles.files.exists(path)
        self._file: CachedFile = handles.open(path, create=True)
        self._mapping: CachedMapping | None = None
        self._mapped_count = 0
        # A preallocated or torn file may end in part of an entry, which is no entry at all.
        self.entry_count = self._file.size() // self._entry_size
        self.last_entry: Entry = self._entry_or_start(self.entry_count - 1)

    @abstractmethod
    def _pack(self, entry: Entry) -> bytes: ...

    @abstractmethod
    def _unpack(self, raw: tuple[int, ...]) -> Entry: ...

    @abstractmethod
    def _start(self) -> Entry:
        """What a search finds in front of the first entry."""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return self.entry_count * self._entry_size

    @property
    def is_full(self) -> bool:
        return self.entry_count >= self._entry_count_max

    def entry(self, number: int) -> Entry:
        check(0 <= number < self.entry_count, "entry %d of %d", number, self.entry_count)
        size = self._entry_size
        return self._unpack(self.entry_struct.unpack(self._file.read_at(number * size, size)))

    def _entry_or_start(self, number: int) -> Entry:
        return self.entry(number) if number >= 0 else self._start()

    def entries(self) -> list[Entry]:
        if self.entry_count == 0:
            return []
        data = self._file.read_at(0, self.size_bytes)
        return [self._unpack(raw) for raw in self.entry_struct.iter_unpack(data)]

    def _floor(self, target: int, field: int) -> int:
        """The number of the last entry whose raw `field` is at most `target`, -1 if none is."""
        size, unpack_from = self._entry_size, self.entry_struct.unpack_from
        if self.entry_count - self._mapped_count > UNMAPPED_ENTRIES_MAX:
            self._map()
        mapped = self._mapped_count
        tail = self._file.read_at(mapped * size, (self.entry_count - mapped) * size)
        if mapped == 0 or (tail and unpack_from(tail, 0)[field] <= target):
            in_tail = range(len(tail) // size)
            found = bisect_right(in_tail, target, key=lambda n: unpack_from(tail, n * size)[field])
            return mapped + found - 1
        check(self._mapping is not None, "%s has lost its mapping", self.path)
        view = self._mapping.view  # type: ignore[union-attr]
        return (
            bisect_right(range(mapped), target, key=lambda n: unpack_from(view, n * size)[field])
            - 1
        )

    def _map(self) -> None:
        self._unmap()
        self._mapping = self._handles.map(self.path)
        self._mapped_count = self.entry_count

    def _unmap(self) -> None:
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
            self._mapped_count = 0

    # -- writing ---------------------------------------------------------------------------------

    def _append(self, entry: Entry) -> None:
        self._file.write_at(self.size_bytes, self._pack(entry))
        self.entry_count += 1
        self.last_entry = entry

    def clear(self) -> None:
        """Remove all entries: what recovery does before it scans the log."""
        self._keep_entries(0)

    def _keep_entries(self, count: int) -> None:
        self._unmap()  # Touching a mapped page that truncation took away would kill the process.
        self._file.truncate(count * self._entry_size)
        self.entry_count = count
        self.last_entry = self._entry_or_start(count - 1)

    def trim(self) -> None:
        """Cut off what was preallocated: the segment is sealed, no more entries come."""
        if self._file.size() != self.size_bytes:
            self._unmap()
            self._file.truncate(self.size_bytes)

    def sync(self) -> None:
        self._file.sync()

    def moved_to(self, path: str) -> None:
        self.path = path
        self._file.moved_to(path)
        if self._mapping is not None:
            self._mapping.moved_to(path)

    def close(self) -> None:
        self._unmap()
        self._file.close()

    def _corrupt(self, sentence: str) -> CorruptIndexError:
        return CorruptIndexError(f"{self.path}: {sentence}")
