"""Entries of the index: order keys as 24 bytes that compare as the keys do.

    uint64 due, uint64 armed offset, uint64 offset, all big-endian

A file of entries is a history in the order of the log. A *mark* in it takes back the entry with the
same due time and offset that stands in front of it; in the place of the armed offset it has the
complement of the offset of the event that took it back, whose first bit tells it from an entry. The
same message may be added again behind its mark.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from headwater.wire.delayed.copies import OrderKey

ENTRY_BYTES: Final = 24
#: The numbers of a key are not negative, else their bytes would not compare as they do.
_ENTRY: Final = struct.Struct(">QQQ")
_DUE: Final = struct.Struct(">Q16x")
_COMPLEMENT: Final = 2**64 - 1
#: Where the byte stands that tells marks from entries, and from which value on it does.
_KIND: Final = 8
_MARK: Final = 0x80


def pack(key: OrderKey) -> bytes:
    return _ENTRY.pack(*key)


def pack_mark(key: OrderKey, at_offset: int) -> bytes:
    """What takes an entry back, by an event at `at_offset`."""
    return _ENTRY.pack(key.due_ms, at_offset ^ _COMPLEMENT, key.offset)


def unpack(entry: bytes) -> OrderKey:
    return OrderKey._make(_ENTRY.unpack(entry))


def first_of(due_ms: int) -> bytes:
    """In front of every entry that is due at this time, and behind all that are due earlier."""
    return _ENTRY.pack(max(due_ms, 0), 0, 0)


def slices(data: bytes | bytearray) -> list[bytes]:
    """The entries and marks one by one."""
    whole = bytes(data)
    return [whole[at : at + ENTRY_BYTES] for at in range(0, len(whole), ENTRY_BYTES)]


def mark_count(data: bytes) -> int:
    kinds = data[_KIND::ENTRY_BYTES]
    return 0 if kinds.isascii() else sum(kind >= _MARK for kind in kinds)


def by_due(data: bytes, width_ms: int) -> dict[int, bytes]:
    """Entries and marks grouped by due time divided by a width, each group in the order it had."""
    groups: dict[int, list[bytes]] = {}
    for (due_ms,), entry in zip(_DUE.iter_unpack(data), slices(data), strict=True):
        number = due_ms // width_ms
        group = groups.get(number)
        if group is None:
            group = groups[number] = []
        group.append(entry)
    return {number: b"".join(group) for number, group in groups.items()}


def live_entries(
    chunks: Callable[[], Iterable[bytes]], from_ms: int, to_ms: int
) -> Iterator[bytes]:
    """What a history leaves of the entries due in a range, in the order of the history.

    It is read twice, so that it need not be in memory: once for the marks, once for the entries.
    """
    low, high = first_of(from_ms), first_of(to_ms)
    last_marks: dict[bytes, int] = {}
    number = 0
    for chunk in chunks():
        if not chunk[_KIND::ENTRY_BYTES].isascii():
            for at, entry in enumerate(slices(chunk), number):
                if entry[_KIND] >= _MARK and low <= entry < high:
                    last_marks[_name(entry)] = at
        number += len(chunk) // ENTRY_BYTES
    if not last_marks:
        for chunk in chunks():
            # A mark that is not in the range cannot be taken for an entry that is.
            yield from (entry for entry in slices(chunk) if low <= entry < high)
        return
    number = 0
    for chunk in chunks():
        for at, entry in enumerate(slices(chunk), number):
            if (
                low <= entry < high
                and entry[_KIND] < _MARK
                and at > last_marks.get(_name(entry), -1)
            ):
                yield entry
        number += len(chunk) // ENTRY_BYTES


def find_live(chunks: Iterable[bytes], due_ms: int, offset: int) -> bytes | None:
    """The entry of a message with this due time and offset, if a history leaves one."""
    due = due_ms.to_bytes(8, "big")
    found = None
    for chunk in chunks:
        for at in positions(chunk, due, offset.to_bytes(8, "big"), 0, len(chunk)):
            found = None if chunk[at + _KIND] >= _MARK else chunk[at : at + ENTRY_BYTES]
    return found


class Marks(NamedTuple):
    """What a history has taken back."""

    #: The offset of the event with which the history begins.
    begins_at: int
    #: Where the messages lie of which it has marks, at any time that was theirs.
    offsets: set[int]


def read_marks(chunks: Iterable[bytes]) -> Marks | None:
    """The marks of a history; None if it is empty."""
    begins_at = -1
    found: set[int] = set()
    for chunk in chunks:
        if begins_at < 0:
            event = int.from_bytes(chunk[_KIND:16], "big")
            begins_at = event if chunk[_KIND] < _MARK else event ^ _COMPLEMENT
        if not chunk[_KIND::ENTRY_BYTES].isascii():
            found.update(marked_offset(each) for each in slices(chunk) if each[_KIND] >= _MARK)
    return None if begins_at < 0 else Marks(begins_at, found)


def marked_offset(mark: bytes) -> int:
    return int.from_bytes(mark[16:], "big")


def positions(
    data: bytes | bytearray, due: bytes, offset: bytes, start: int, end: int
) -> Iterator[int]:
    """Where entries or marks with this due time and offset begin, between two that begin there."""
    at = data.find(offset, start, end)
    while at >= 0:
        begin = at - 16
        if begin >= start and begin % ENTRY_BYTES == 0 and data.startswith(due, begin):
            yield begin
        at = data.find(offset, at + 1, end)


def _name(entry: bytes) -> bytes:
    return entry[:_KIND] + entry[16:]
