"""A region on its way to a peer: how far it is, and the system calls that move it.

The file is pinned from the first byte to the last, where it has pins: its descriptor must not be
closed, and the number not be given to another file, while the kernel is told to send from it.

A file may become shorter while a slow peer takes its time. What was promised to the peer can then
not be kept: `RegionCutShortError` says so, and the connection has to end.
"""

from __future__ import annotations

import io
import mmap
import os

from headwater.net.page_cache import is_cached, read_in
from headwater.net.region import Region, RegionFile

WINDOW_SIZE = 1024 * 1024
"""How far ahead a region is made sure to be in memory."""
PAGE_SIZE = mmap.PAGESIZE


class RegionCutShortError(Exception):
    """The file ends before the region does."""


class RegionTransfer:
    """One region being sent; `close` must follow."""

    __slots__ = ("_cached_until", "_descriptor", "_position", "_region", "left")

    def __init__(self, region: Region) -> None:
        _pin(region.file)
        self._region = region
        self.left = region.size
        self._position = self._cached_until = region.position
        try:
            self._descriptor = region.file.fileno()
        except io.UnsupportedOperation:
            self._descriptor = -1

    @property
    def has_descriptor(self) -> bool:
        return self._descriptor >= 0

    def window(self) -> int:
        """How many bytes can be sent next without waiting for the disk: none if it must be read.

        It is never more than `WINDOW_SIZE`, and memory is not asked again for the rest of one.
        """
        size = self._cached_until - self._position
        if size <= 0:
            size = self._next_window()
            if self._descriptor >= 0 and not is_cached(self._descriptor, self._position, size):
                return 0
            self._cached_until = self._position + size
        return size

    def read_in(self) -> None:
        """Bring the next window into memory; for a thread, as it waits for the disk."""
        size = self._next_window()
        read_in(self._descriptor, self._position, size)
        # Memory may be so short that it is gone again: then sending waits for the disk after all.
        self._cached_until = self._position + size

    def size_to_page(self) -> int:
        """How many bytes there are up to the next page of the file."""
        return -self._position % PAGE_SIZE

    def send_to(self, socket_descriptor: int, size: int) -> int:
        """Let the kernel send up to `size` bytes; fewer, or none, if the socket is full."""
        try:
            sent = os.sendfile(socket_descriptor, self._descriptor, self._position, size)
        except BlockingIOError:
            return 0
        return self._advance(sent)

    def read(self, size: int) -> bytes:
        """The next `size` bytes."""
        data = self._region.file.read_at(self._position, size)
        if len(data) != size:
            raise RegionCutShortError
        self._advance(size)
        return data

    def close(self) -> None:
        _unpin(self._region.file)

    def _next_window(self) -> int:
        """All that is left, or what ends with a page."""
        if self.left <= WINDOW_SIZE:
            return self.left
        return WINDOW_SIZE - (self._position + WINDOW_SIZE) % PAGE_SIZE

    def _advance(self, size: int) -> int:
        if size == 0:
            raise RegionCutShortError
        self._position += size
        self.left -= size
        return size


def _pin(file: RegionFile) -> None:
    pin = getattr(file, "pin", None)
    if pin is not None:
        pin()


def _unpin(file: RegionFile) -> None:
    unpin = getattr(file, "unpin", None)
    if unpin is not None:
        unpin()
