"""Which messages have an id of their sender's: 8 bytes of its hash and the key of the message.

    uint64 hash, then the key as it was armed (see `entries`): due, armed offset, offset

The first byte of the hash says in which file. Different ids may have the same hash, and messages
may be gone: a key is only a candidate. Whoever asks finds out by the key whether it waits, which
costs next to nothing, and looks into the log for those that do. In each file armed offsets grow, so
what the log has forgotten stands in front; a file of which that is half is replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

from headwater.delay.index import entries
from headwater.delay.index.append_files import AppendFile, AppendFiles
from headwater.delay.index.checkpoint import IdsRow
from headwater.wire.delayed.copies import OrderKey

SUFFIX: Final = ".delayids"
_HASH_BYTES: Final = 8
_ENTRY_BYTES: Final = _HASH_BYTES + entries.ENTRY_BYTES
#: Where in an entry its armed offset stands.
_ARMED: Final = slice(_HASH_BYTES + 8, _HASH_BYTES + 16)
#: How many files are looked at when old offsets are forgotten, so that nobody waits for all.
_LOOKED_AT: Final = 16
_FILE_COUNT: Final = 256


class DelayIds:
    """The senders' ids in one partition."""

    def __init__(self, pool: AppendFiles) -> None:
        self._pool = pool
        self._files: dict[int, AppendFile] = {}
        self._forgotten_below = 0
        self._looked_at = 0

    def load(self, rows: Iterable[IdsRow]) -> None:
        """Take over the files that a checkpoint names."""
        for row in rows:
            self._files[row.prefix] = self._pool.adopt(AppendFile(row.name, row.size))

    def rows(self) -> tuple[IdsRow, ...]:
        return tuple(
            IdsRow(file.name, file.size_bytes, prefix) for prefix, file in self._files.items()
        )

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self._files.values())

    def add(self, sender_id: bytes, key: OrderKey) -> None:
        """Armed offsets never decrease from call to call."""
        digest = _hash(sender_id)
        file = self._files.get(digest[0])
        if file is None:
            file = self._files[digest[0]] = self._pool.create(f"{digest[0]:02x}", SUFFIX)
        self._pool.append(file, digest + entries.pack(key))
        self._pool.spill()

    def candidates(self, sender_id: bytes) -> Iterator[OrderKey]:
        """Keys of messages that may have this id, newest first."""
        digest = _hash(sender_id)
        file = self._files.get(digest[0])
        if file is not None:
            for chunk in reversed(list(self._pool.chunks(file))):
                for key in _keys(chunk, digest):
                    if key.offset >= self._forgotten_below:
                        yield key

    def forget_below(self, offset: int) -> None:
        """Nobody asks for offsets below this any more. Each call clears up a part of the files."""
        self._forgotten_below = max(self._forgotten_below, offset)
        for number in range(self._looked_at, self._looked_at + _LOOKED_AT):
            file = self._files.get(number % _FILE_COUNT)
            if file is not None:
                self._clear_up(number % _FILE_COUNT, file)
        self._looked_at = (self._looked_at + _LOOKED_AT) % _FILE_COUNT

    def _clear_up(self, prefix: int, file: AppendFile) -> None:
        if not self._is_mostly_old(file):
            return
        data = b"".join(self._pool.chunks(file))
        old = bisect_left(
            range(len(data) // _ENTRY_BYTES),
            self._forgotten_below,
            key=lambda at: _armed_offset(data[at * _ENTRY_BYTES : (at + 1) * _ENTRY_BYTES]),
        )
        # The old file stays what it is, for the checkpoint that counts its bytes.
        self._pool.retire(file)
        del self._files[prefix]
        if old * _ENTRY_BYTES < len(data):
            self._files[prefix] = self._pool.create(f"{prefix:02x}", SUFFIX)
            self._pool.append(self._files[prefix], data[old * _ENTRY_BYTES :])
            self._pool.spill()

    def _is_mostly_old(self, file: AppendFile) -> bool:
        """Whether the entry in the middle is old."""
        middle = file.size_bytes // _ENTRY_BYTES // 2 * _ENTRY_BYTES
        if middle >= file.size:
            entry = bytes(file.buffer[middle - file.size :][:_ENTRY_BYTES])
        else:
            opened = self._pool.files.open(self._pool.path(file.name))
            try:
                entry = opened.read_at(middle, _ENTRY_BYTES)
            finally:
                opened.close()
        return _armed_offset(entry) < self._forgotten_below


def _hash(sender_id: bytes) -> bytes:
    return blake2b(sender_id, digest_size=8).digest()


def _armed_offset(entry: bytes) -> int:
    return int.from_bytes(entry[_ARMED], "big")


def _keys(chunk: bytes, digest: bytes) -> Iterator[OrderKey]:
    """The keys with this hash, the last one first."""
    at = chunk.rfind(digest)
    while at >= 0:
        if at % _ENTRY_BYTES == 0:
            yield entries.unpack(chunk[at + _HASH_BYTES : at + _ENTRY_BYTES])
        # What overlaps with this one may begin up to a byte in front of it.
        at = chunk.rfind(digest, 0, at + len(digest) - 1)
