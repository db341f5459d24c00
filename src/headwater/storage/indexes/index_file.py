"""A sorted file of fixed-size entries: what the offset, the time and the hidden index share.

The active segment's index grows by a few entries at a time, the newest of which wait in memory, and
is searched by reading blocks of it; when its segment is sealed it is mapped into memory. No more
than those entries is kept on the heap, so memory stays flat however large segments grow, and
descriptors are the handle cache's to bound.

An index is a hint that can always be rebuilt from its log. It is complete in its file, and made
durable, only when its segment is sealed and flushed; recovery rebuilds the index of every segment
that it scans.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import Generic, TypeVar

from headwater.base.checks import check
from headwater.storage.disk.files import Buffer
from headwater.storage.disk.handles import CachedFile, CachedMapping, HandleCache
from headwater.storage.errors import CorruptIndexError

Entry = TypeVar("Entry", bound=tuple[int, ...])
Raw = tuple[int, ...]

#: Entries that a search looks at together: 4 KiB of an offset index.
BLOCK_ENTRIES = 512
#: So many entries are written together: large batches have one each, and writing it by itself would
#: cost more than all else that is done for the index.
WAITING_ENTRIES_MAX = 64


class IndexFile(ABC, Generic[Entry]):
    """Entries of integers, sorted by all that are searched; subclasses say how they are stored."""

    entry_struct: struct.Struct

    def __init__(
        self, handles: HandleCache, path: str, base_offset: int, size_max_bytes: int
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self._handles = handles
        self._entry_size = self.entry_struct.size
        self._waiting_bytes_max = WAITING_ENTRIES_MAX * self._entry_size
        self._entry_count_max = size_max_bytes // self._entry_size
        self.was_missing = not handles.files.exists(path)
        self._file: CachedFile = handles.open(path, create=True)
        self._mapping: CachedMapping | None = None
        #: Packed entries that come after those in the file.
        self._waiting = bytearray()
        # A preallocated or torn file may end in part of an entry, which is no entry at all.
        self.entry_count = self._file.size() // self._entry_size
        self.last_entry: Entry = self._entry_or_start(self.entry_count - 1)

    @abstractmethod
    def _pack(self, entry: Entry) -> bytes: ...

    @abstractmethod
    def _unpack(self, raw: Raw) -> Entry: ...

    @abstractmethod
    def _start(self) -> Entry:
        """What a search finds in front of the first entry."""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return self.entry_count * self._entry_size

    @property
    def _written_bytes(self) -> int:
        return self.size_bytes - len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self.entry_count >= self._entry_count_max

    def entry(self, number: int) -> Entry:
        check(0 <= number < self.entry_count, "entry %d of %d", number, self.entry_count)
        return self._unpack(self.entry_struct.unpack_from(self._block(number, 1)))

    def _entry_or_start(self, number: int) -> Entry:
        return self.entry(number) if number >= 0 else self._start()

    def _unpack_or_start(self, raw: Raw | None) -> Entry:
        return self._start() if raw is None else self._unpack(raw)

    def entries(self) -> list[Entry]:
        data = self._block(0, self.entry_count)
        return [self._unpack(raw) for raw in self.entry_struct.iter_unpack(data)]

    def _block(self, first: int, count: int) -> Buffer:
        """Packed entries, from the mapping as far as it goes; let go of them soon."""
        start, end = first * self._entry_size, (first + count) * self._entry_size
        if self._mapping is not None:
            view = self._mapping.view
            if end <= len(view):
                return view[start:end]
        written = self._written_bytes
        if end <= written:
            return self._file.read_at(start, end - start)
        if start >= written:
            return self._waiting[start - written : end - written]
        return self._file.read_at(start, written - start) + self._waiting[: end - written]

    def _floor(self, target: int, field: int, guess: int) -> tuple[int, Raw | None, Raw | None]:
        """The last entry whose raw `field` is at most `target`: its number, and its raw fields.

        The number is -1 and the fields are None if there is none. Last come the raw fields of the
        entry behind it, if that was read on the way.

        The search looks at a block of entries at a time, the first around `guess`. What an index
        holds mostly grows evenly, so that a good guess needs no second block; if it was not good
        the search goes on by halving.
        """
        low, high = 0, self.entry_count
        size, unpack_from = self._entry_size, self.entry_struct.unpack_from
        while low < high:
            start = max(low, min(guess - BLOCK_ENTRIES // 2, high - BLOCK_ENTRIES))
            count = min(BLOCK_ENTRIES, high - start)
            block = self._block(start, count)
            if unpack_from(block)[field] > target:
                high = start
            elif start + count < high and unpack_from(block, (count - 1) * size)[field] <= target:
                low = start + count
            else:
                places = range(0, count * size, size)
                found = bisect_right(places, target, key=lambda at: unpack_from(block, at)[field])
                return (
                    start + found - 1,
                    unpack_from(block, places[found - 1]),
                    unpack_from(block, places[found]) if found < count else None,
                )
            guess = (low + high) >> 1
        return low - 1, unpack_from(self._block(low - 1, 1)) if low else None, None

    def _unmap(self) -> None:
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None

    # -- writing ---------------------------------------------------------------------------------

    def _append(self, entry: Entry) -> None:
        if len(self._waiting) >= self._waiting_bytes_max:
            # Before anything has changed, as it may fail.
            self.write_out()
        self._waiting += self._pack(entry)
        self.entry_count += 1
        self.last_entry = entry

    def write_out(self) -> None:
        """Have all entries in the file."""
        if self._waiting:
            self._file.write_at(self._written_bytes, bytes(self._waiting))
            self._waiting.clear()

    def clear(self) -> None:
        """Remove all entries: what recovery does before it scans the log."""
        self._keep_entries(0)

    def _keep_entries(self, count: int) -> None:
        self._unmap()  # Touching a mapped page that truncation took away would kill the process.
        size, written = count * self._entry_size, self._written_bytes
        # Also if only entries that wait go: an attempt to write them may have left some behind.
        self._file.truncate(min(size, written))
        del self._waiting[max(size - written, 0) :]
        self.entry_count = count
        self.last_entry = self._entry_or_start(count - 1)

    def trim(self) -> None:
        """Write out, and cut off what was preallocated: the segment is sealed, no more come."""
        self.write_out()
        if self._file.size() != self.size_bytes:
            self._unmap()
            self._file.truncate(self.size_bytes)
        if self._mapping is None and self.entry_count:
            self._mapping = self._handles.map(self.path)

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
