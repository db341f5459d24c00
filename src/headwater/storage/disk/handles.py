"""Keeps open descriptors within a bound, however many segments a broker has.

A log directory with thousands of partitions has tens of thousands of files, most of them idle.
`HandleCache` gives out handles that look open for as long as their owner wants, while the
descriptor behind one is closed when others need the room and reopened when it is used again. An
open file and a mapping count alike, because Python's mmap keeps a descriptor of its own.

Which one goes: second chance, the cheap relative of least-recently-used. A use only sets a flag on
the handle, so the append path never reorders a list. The sweep that makes room takes the handle
that was opened or spared longest ago; if its flag is set, it clears the flag and spares it.

How one goes: the cache drops its reference and does not call `close`. Whoever is inside an
operation at that moment, such as a thread in `sync` or a reader with a slice of a mapping, holds a
reference too, and the descriptor closes when the last of them lets go. A descriptor can therefore
never be closed, and its number given to another file, under a system call that is using it; no
lock is needed for that on any path. Opening, pinning and evicting do take a lock.

A number from `fileno` is not a reference: pin the handle for as long as the number is in use. Pin
it also around a rename and `moved_to` if another thread may be using it, or that thread could
look for the file under its old name.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from headwater.base.checks import check
from headwater.storage.disk.files import Buffer, File, FileSystem, Mapping

Resource = TypeVar("Resource", File, Mapping)


class Handle(Generic[Resource]):
    """A file or mapping that is open only while it is in use, or until others need the room."""

    __slots__ = ("_cache", "_closed", "_opener", "_pin_count", "_resource", "_used", "path")

    def __init__(self, cache: HandleCache, path: str, opener: Callable[[str], Resource]) -> None:
        self.path = path
        self._cache = cache
        self._opener: Callable[[str], Resource] = opener
        self._resource: Resource | None = None
        self._used = False
        self._closed = False
        self._pin_count = 0

    @property
    def is_open(self) -> bool:
        """Whether it occupies a descriptor at this moment."""
        return self._resource is not None

    def pin(self) -> None:
        """Open it if need be and keep it open until `unpin`; pins are counted."""
        cache = self._cache
        with cache._lock:
            self._open_locked()
            self._pin_count += 1
            if self._pin_count == 1:
                del cache._evictable[self]
                cache._pinned_count += 1

    def unpin(self) -> None:
        cache = self._cache
        with cache._lock:
            check(self._pin_count > 0, "%s is unpinned more often than pinned", self.path)
            self._pin_count -= 1
            if self._pin_count == 0:
                cache._pinned_count -= 1
                if self._closed:
                    self._resource = None
                else:
                    cache._evictable[self] = None
                    cache._evict_down_to(cache.capacity)

    def moved_to(self, path: str) -> None:
        """The file has been renamed; an open descriptor is still the right one."""
        with self._cache._lock:
            self.path = path

    def close(self) -> None:
        """Give it up; a pinned one stays usable until its last pin goes."""
        cache = self._cache
        with cache._lock:
            self._closed = True
            if self._pin_count == 0:
                cache._evictable.pop(self, None)
                self._resource = None

    def _open(self) -> Resource:
        with self._cache._lock:
            return self._open_locked()

    def _open_locked(self) -> Resource:
        resource = self._resource
        if resource is None:
            if self._closed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
            cache = self._cache
            cache._evict_down_to(cache.capacity - 1)
            self._resource = resource = self._opener(self.path)
            cache._evictable[self] = None
        return resource


class CachedFile(Handle[File]):
    """A `File` of the cache.

    Each operation takes the resource into a local name, which is the reference that keeps the
    descriptor open until the operation returns.
    """

    __slots__ = ()

    def read_at(self, position: int, size: int) -> bytes:
        self._used = True
        file = self._resource
        if file is None:
            file = self._open()
        return file.read_at(position, size)

    def write_at(self, position: int, data: Buffer) -> None:
        self._used = True
        file = self._resource
        if file is None:
            file = self._open()
        file.write_at(position, data)

    def truncate(self, size: int) -> None:
        self._used = True
        file = self._resource or self._open()
        file.truncate(size)

    def reserve(self, size: int) -> None:
        self._used = True
        file = self._resource or self._open()
        file.reserve(size)

    def size(self) -> int:
        self._used = True
        file = self._resource or self._open()
        return file.size()

    def sync(self) -> None:
        """Make content durable, also what was written through descriptors closed since.

        Dirty pages belong to the file, not to the descriptor that wrote them, so Linux writes all
        of them back here. Nor does an error get lost with a descriptor: one that writing back met
        while the file was closed is reported to the first sync after it is opened again.
        """
        self._used = True
        file = self._resource or self._open()
        file.sync()

    def fileno(self) -> int:
        """The descriptor, good only while this handle is pinned."""
        self._used = True
        file = self._resource or self._open()
        return file.fileno()

    def moved_to(self, path: str) -> None:
        super().moved_to(path)
        file = self._resource
        if file is not None:
            file.path = path


class CachedMapping(Handle[Mapping]):
    """A `Mapping` of the cache, mapped when its view is first asked for.

    A view that is kept stays valid, and keeps its descriptor, after the cache has let go of it:
    take it for one search or one read, and not for longer. A file that has been mapped again has
    a view of its length at that later moment.
    """

    __slots__ = ()

    @property
    def view(self) -> memoryview:
        self._used = True
        mapping = self._resource
        if mapping is None:
            mapping = self._open()
        return mapping.view


class HandleCache:
    """Opens files and mappings within a bound of descriptors; only pinned ones may exceed it."""

    def __init__(self, files: FileSystem, capacity: int) -> None:
        check(capacity > 0, "a handle cache needs room for a descriptor, not for %d", capacity)
        self.files = files
        self.capacity = capacity
        self._lock = threading.Lock()
        # The handles that are open and not pinned, the next candidate for eviction first.
        self._evictable: OrderedDict[Handle[Any], None] = OrderedDict()
        self._pinned_count = 0

    @property
    def open_count(self) -> int:
        """How many descriptors are open through this cache."""
        return len(self._evictable) + self._pinned_count

    def open(self, path: str, *, create: bool = False) -> CachedFile:
        """Open at once, so that an absent file is an error here and not later."""
        handle = CachedFile(self, path, self.files.open)
        with self._lock:
            self._evict_down_to(self.capacity - 1)
            handle._resource = self.files.open(path, create=create)
            self._evictable[handle] = None
        return handle

    def map(self, path: str) -> CachedMapping:
        """A mapping that takes no descriptor until it is looked at."""
        return CachedMapping(self, path, self.files.map)

    def _evict_down_to(self, count: int) -> None:
        """Let go of handles, with the lock held, until `count` are open or the rest is pinned.

        Each step either evicts a handle or clears a flag, so a sweep ends after two rounds at
        most, and it can only be long after as many uses as it has steps.
        """
        evictable = self._evictable
        while evictable and len(evictable) + self._pinned_count > count:
            handle = next(iter(evictable))
            if handle._used:
                handle._used = False
                evictable.move_to_end(handle)
            else:
                del evictable[handle]
                handle._resource = None
