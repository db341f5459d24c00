"""A sorted file of fixed-size entries: what the offset index and the time index share.

The active segment's index grows by `write_at`; when its segment is sealed the index is mapped into
memory on first use. Either way nothing but the entry count and the last entry is kept on the heap,
so memory stays flat however large segments grow, and descriptors are the handle cache's to bound.

An index is a hint that can always be rebuilt from its log. It is made durable only when its segment
is sealed and flushed; recovery rebuilds the index of every segment that it scans.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from headwater.base.checks import check
from headwater.storage.errors import CorruptIndexError
from headwater.storage.handles import CachedFile, CachedMapping, HandleCache

Entry = TypeVar("Entry", bound=tuple[int, int])


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
        self._file: CachedFile = handles.open(path, create=True)
        self._mapping: CachedMapping | None = None
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
        return self._unpack(self._raw_reader()(number))

    def _entry_or_start(self, number: int) -> Entry:
        return self.entry(number) if number >= 0 else self._start()

    def entries(self) -> list[Entry]:
        if self.entry_count == 0:
            return []
        data = self._file.read_at(0, self.size_bytes)
        return [self._unpack(raw) for raw in self.entry_struct.iter_unpack(data)]

    def _raw_reader(self) -> Callable[[int], tuple[int, ...]]:
        """Reads packed entries, through the mapping if there is one, for as long as it is held."""
        size = self._entry_size
        if self._mapping is not None:
            view, unpack_from = self._mapping.view, self.entry_struct.unpack_from
            return lambda number: unpack_from(view, number * size)
        read_at, unpack = self._file.read_at, self.entry_struct.unpack
        return lambda number: unpack(read_at(number * size, size))

    def _floor(self, target: int, field: int) -> int:
        """The number of the last entry whose raw `field` is at most `target`, -1 if none is."""
        low, high = 0, self.entry_count
        raw = self._raw_reader()
        while low < high:
            middle = (low + high) >> 1
            if raw(middle)[field] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    # -- writing ---------------------------------------------------------------------------------

    def _append(self, entry: Entry) -> None:
        self._file.write_at(self.size_bytes, self._pack(entry))
        self.entry_count += 1
        self.last_entry = entry

    def replace_entries(self, entries: list[Entry]) -> None:
        """Rewrite the whole index: what recovery does after it has scanned the log."""
        self.unseal()
        file = self._file
        file.truncate(0)
        if entries:
            file.write_at(0, b"".join(map(self._pack, entries)))
        self.entry_count = len(entries)
        self.last_entry = entries[-1] if entries else self._start()

    def _keep_entries(self, count: int) -> None:
        self.unseal()  # Touching a mapped page that truncation took away would kill the process.
        self._file.truncate(count * self._entry_size)
        self.entry_count = count
        self.last_entry = self._entry_or_start(count - 1)

    def seal(self) -> None:
        """No more entries: trim what was preallocated, and read through a mapping from now on."""
        file = self._file
        if file.size() != self.size_bytes:
            file.truncate(self.size_bytes)
        if self.entry_count:
            self._mapping = self._handles.map(self.path)

    def unseal(self) -> None:
        """The segment is the active one again, after truncation took those behind it."""
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None

    def sync(self) -> None:
        self._file.sync()

    def moved_to(self, path: str) -> None:
        self.path = path
        self._file.moved_to(path)
        if self._mapping is not None:
            self._mapping.moved_to(path)

    def close(self) -> None:
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
        self._file.close()

    def _corrupt(self, sentence: str) -> CorruptIndexError:
        return CorruptIndexError(f"{self.path}: {sentence}")
