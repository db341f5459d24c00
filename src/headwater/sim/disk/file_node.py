"""One simulated file: what reads see, what is durable, and the changes in between.

Reads see `content`, as they would see the page cache. `durable` is the content at the last sync.
Every write and truncation since then is kept, in order, in `_pending`, and a power loss decides
the fate of each. The rules are those of the least helpful disk that still honours a sync:

- A write may be lost, whole, or torn: cut at a byte or at a sector, or in sectors of which some
  arrived and others did not. The length may have grown although the bytes did not arrive; they
  then read as zeros, or as whatever the disk held there before.
- A truncation may be undone, even if a write that came after it arrived.
- Changes may arrive in any subset. Where they overlap, the later one wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

SECTOR_SIZE = 512


@dataclass(frozen=True, slots=True)
class PendingWrite:
    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        overlay(content, self.position, self.data)

    def apply_torn(self, content: bytearray, rng: Random) -> None:
        """Apply a part of it, in one of the ways in which a disk does that."""
        position, data = self.position, self.data
        kind = rng.choice(("byte", "byte", "sector", "sectors", "length", "garbage"))
        if kind in ("byte", "sector"):
            cut = rng.randrange(len(data))
            if kind == "sector":
                cut = max(0, (position + cut) // SECTOR_SIZE * SECTOR_SIZE - position)
            overlay(content, position, data[:cut])
        elif kind == "sectors":
            for start, end in _sectors(position, len(data)):
                if rng.random() < 0.5:
                    overlay(content, start, data[start - position : end - position])
        elif kind == "garbage":
            grown = position + len(data) - len(content)
            if grown > 0:
                content += rng.randbytes(grown)
        if kind == "length" or rng.random() < 0.5:
            _extend(content, position + len(data))


@dataclass(frozen=True, slots=True)
class PendingTruncation:
    size: int

    def apply(self, content: bytearray) -> None:
        _extend(content, self.size)
        del content[self.size :]

    def apply_torn(self, content: bytearray, rng: Random) -> None:
        """A truncation is one change of the length: there is no half of it."""
        self.apply(content)


def overlay(content: bytearray, position: int, data: bytes) -> None:
    """Write as a file does: a gap before `position` becomes zeros, and no bytes change nothing."""
    if data:
        _extend(content, position)
        content[position : position + len(data)] = data


def _extend(content: bytearray, size: int) -> None:
    if size > len(content):
        content.extend(bytes(size - len(content)))


def _sectors(position: int, size: int) -> list[tuple[int, int]]:
    """The (start, end) of each sector's share of a write, sectors being aligned in the file."""
    end = position + size
    bounds = [position]
    bounds += range((position // SECTOR_SIZE + 1) * SECTOR_SIZE, end, SECTOR_SIZE)
    bounds.append(end)
    return list(pairwise(bounds))


class FileNode:
    """The content of a file, apart from its name."""

    def __init__(self, number: int, now_ms: int, content: bytes = b"") -> None:
        self.number = number
        self.modified_ms = now_ms
        self.content = bytearray(content)
        self.durable = bytearray(content)
        #: Goes up with each change, so that a mapping knows when to look again.
        self.version = 0
        self._pending: list[PendingWrite | PendingTruncation] = []

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self, position: int, size: int) -> bytes:
        with memoryview(self.content) as view:
            return bytes(view[position : position + size])

    def write(self, position: int, data: bytes, now_ms: int) -> None:
        if data:
            self._change(PendingWrite(position, data), now_ms)

    def truncate(self, size: int, now_ms: int) -> None:
        self._change(PendingTruncation(size), now_ms)

    def _change(self, change: PendingWrite | PendingTruncation, now_ms: int) -> None:
        change.apply(self.content)
        self._pending.append(change)
        self.modified_ms = now_ms
        self.version += 1

    def sync(self) -> None:
        for change in self._pending:
            change.apply(self.durable)
        self._pending.clear()

    def forget_unsynced(self, rng: Random) -> None:
        """What a failed sync does: some changes are taken for written although they are not.

        They can still be read, but no later sync writes them.
        """
        self._pending = [change for change in self._pending if rng.random() < 0.5]

    def after_power_loss(self, rng: Random) -> bytes:
        """What is found on the disk; the node itself stays as it is."""
        content = bytearray(self.durable)
        if not self._pending:
            return bytes(content)
        # Without the first three, long histories would hardly ever arrive whole or in order.
        kind = rng.choice(("none", "all", "prefix", "any", "any"))
        prefix = rng.randrange(len(self._pending)) if kind == "prefix" else 0
        for number, change in enumerate(self._pending):
            if kind == "any":
                fate = rng.choice(("lost", "whole", "torn"))
            elif kind == "prefix":
                fate = "whole" if number < prefix else "torn" if number == prefix else "lost"
            else:
                fate = "whole" if kind == "all" else "lost"
            if fate == "whole":
                change.apply(content)
            elif fate == "torn":
                change.apply_torn(content, rng)
        return bytes(content)
