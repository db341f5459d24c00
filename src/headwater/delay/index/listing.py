"""Listing what waits in a range of due times: planned by the index, read wherever one likes.

An hour may have millions of messages, and looking through its file takes a second for a million. So
whoever lists for a client has a thread do it. The plan reads only bytes that were written before it
was made, and copies of buffers: it tells what waited then.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

from headwater.delay.index.append_files import AppendFile, AppendFiles, read_chunks
from headwater.delay.index.entries import live_entries, unpack
from headwater.storage.disk.files import FileSystem
from headwater.wire.delayed.copies import OrderKey

#: A listing reads no more files once it has read this much.
LISTED_BYTES_MAX: Final = 32 << 20


class Source(NamedTuple):
    """The part of a file that is of the range."""

    files: FileSystem
    path: str
    size: int
    rest: bytes
    from_ms: int
    to_ms: int

    @classmethod
    def of(cls, pool: AppendFiles, file: AppendFile, from_ms: int, to_ms: int) -> Source:
        path = pool.path(file.name)
        return cls(pool.files, path, file.size, bytes(file.buffer), from_ms, to_ms)

    def entries(self) -> Iterator[bytes]:
        """Those that wait, in any order."""
        return live_entries(self._chunks, self.from_ms, self.to_ms)

    def _chunks(self) -> Iterator[bytes]:
        return read_chunks(self.files, self.path, self.size, self.rest)


class ListingPlan:
    def __init__(
        self, near: list[bytes], sources: list[Source], limit: int, watermark_entry: bytes
    ) -> None:
        self.near = near
        self._limit = limit
        self._watermark_entry = watermark_entry
        #: In the order of their due times; nothing to read if it is empty.
        self.sources = sources

    def run(self) -> list[OrderKey]:
        """The first messages of the range, in order; FileNotFoundError if a file is gone by now.

        If it is fewer than the limit, the range may go on behind the last one all the same, where
        many wait.
        """
        found = list(self.near)
        for source in self.sources:
            if len(found) >= self._limit:
                break
            waiting = (entry for entry in source.entries() if entry > self._watermark_entry)
            found += nsmallest(self._limit - len(found), waiting)
        return [unpack(entry) for entry in found]
