"""Where each record ends: the one thing that cannot be read for all records at once.

A record's end is known only from its begin, which is the end of the one before. But records of one
size, which their producer wrote one after the other, are a fixed step apart: whether all of them
begin with the same length is seen in one comparison, and then the step is right for all of them.
And a producer of such records makes many batches that are divided in the same way. So one batch of
each shape, which is its size and its record count, is followed, and the others of the shape are
taken for divided like it. Whether they are is seen from all their lengths at once; those that are
not are followed too. Where sizes differ, a loop follows the lengths, and looks at nothing else of a
record.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from headwater.client.columns.varint_arrays import (
    Bytes,
    Longs,
    MalformedNumberError,
    read_varints,
)
from headwater.wire.records import Buffer, CorruptRecordError
from headwater.wire.records.varint import read_raw_varint

#: A comparison pays from about so many records on.
_RUN_RECORDS_MIN: Final = 48
#: So many records are followed by the loop after a comparison that did not pay.
_LOOP_RECORDS: Final = 512
_COPIED_RECORD_BYTES: Final = 512


class BrokenChainError(Exception):
    """The lengths do not lead from the first record of a batch to its end."""


class Sections(NamedTuple):
    """Where the records of each batch stand in the data, and how many they are."""

    starts: Longs
    sizes: Longs
    counts: Longs

    @property
    def firsts(self) -> Longs:
        """The number of each batch's first record."""
        return np.cumsum(self.counts) - self.counts


class RecordBounds(NamedTuple):
    #: Where the fields of each record begin, after its length.
    fields: Longs
    ends: Longs


def find_records(data: Buffer, array: Bytes, sections: Sections) -> RecordBounds:
    """The bounds of all records. Raises if the lengths of a batch do not lead to its end."""
    chain = _RecordChain(data, array)
    ends = chain.guessed_ends(sections)
    bounds, is_right = _compared(array, sections, ends)
    if not is_right.all():
        numbers = np.repeat(np.arange(len(sections.counts)), sections.counts)
        chain.follow(sections, np.unique(numbers[~is_right]), ends)
        bounds, is_right = _compared(array, sections, ends)
        if not is_right.all():
            raise MalformedNumberError
    return bounds


def _compared(array: Bytes, sections: Sections, ends: Longs) -> tuple[RecordBounds, Bytes]:
    """The bounds, and which of the records have a length that leads to their end."""
    begins = np.empty_like(ends)
    begins[1:] = ends[:-1]
    has_records = sections.counts > 0
    begins[sections.firsts[has_records]] = sections.starts[has_records]
    raw, fields = read_varints(array, begins)
    is_right = (fields + (raw >> 1) == ends) & (raw & 1 == 0)
    return RecordBounds(fields, ends), is_right


class _RecordChain:
    """Follows the records of one batch or another."""

    def __init__(self, data: Buffer, array: Bytes) -> None:
        self._view = memoryview(data)
        self._array = array

    def guessed_ends(self, sections: Sections) -> Longs:
        """Where each record ends if batches of one shape are divided in the same way."""
        starts, sizes, counts = sections
        if len(starts) == 1 or ((counts == counts[0]).all() and (sizes == sizes[0]).all()):
            division = self._division(int(starts[0]), int(sizes[0]), int(counts[0]))
            return (starts[:, None] + division).ravel()
        ends = np.empty(int(counts.sum()), np.int64)
        shapes, examples, kinds = np.unique(
            sizes << 32 | counts, return_index=True, return_inverse=True
        )
        if 2 * len(shapes) > len(starts):
            self.follow(sections, np.arange(len(starts)), ends)
            return ends
        firsts = sections.firsts
        for kind, example in enumerate(examples.tolist()):
            count = int(counts[example])
            division = self._division(int(starts[example]), int(sizes[example]), count)
            alike = np.flatnonzero(kinds == kind)
            slots = firsts[alike][:, None] + np.arange(count)
            ends[slots] = starts[alike][:, None] + division
        return ends

    def follow(self, sections: Sections, chosen: Longs, ends: Longs) -> None:
        """Write where each record of these batches ends."""
        firsts = sections.firsts
        for number in chosen.tolist():
            start, count = int(sections.starts[number]), int(sections.counts[number])
            first = int(firsts[number])
            division = self._division(start, int(sections.sizes[number]), count)
            ends[first : first + count] = division
            ends[first : first + count] += start

    def _division(self, start: int, size_bytes: int, count: int) -> Longs:
        """The ends of one batch's records, relative to its start. Lengths are not checked."""
        section: Buffer = self._view[start : start + size_bytes]
        if size_bytes < _COPIED_RECORD_BYTES * count:
            # Reading byte after byte of a view is slow; where there are few bytes to each record,
            # copying all of them costs less.
            section = bytes(section)
        array = self._array[start : start + size_bytes]
        parts: list[Longs] = []
        position = 0
        left = count
        try:
            while left:
                run = _run(section, array, position, left)
                parts.append(run)
                left -= len(run)
                position = int(run[-1])
        except (IndexError, CorruptRecordError):
            raise BrokenChainError from None
        if position != size_bytes:
            raise BrokenChainError
        if not parts:
            return np.zeros(0, np.int64)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _run(data: Buffer, array: Bytes, position: int, left: int) -> Longs:
    """The ends of some of the next records, of at least one."""
    if left >= _RUN_RECORDS_MIN:
        first_end, second_end = _followed(data, position, 2)
        if second_end - first_end == first_end - position:
            run = _equal_run(data, array, position, left)
            if len(run) >= _RUN_RECORDS_MIN:
                return run
    return np.array(_followed(data, position, min(left, _LOOP_RECORDS)), np.int64)


def _equal_run(data: Buffer, array: Bytes, position: int, count_max: int) -> Longs:
    """The ends of the record at `position` and of all directly after it of the same length."""
    raw, content = read_raw_varint(data, position)
    size = content + (raw >> 1) - position
    count = min(count_max, (len(data) - position) // size)
    stop = position + count * size
    equal = array[position:stop:size] == data[position]
    for index in range(position + 1, content):
        equal &= array[index:stop:size] == data[index]
    if not equal.all():
        count = int(equal.argmin())
    return np.arange(position + size, position + count * size + 1, size, dtype=np.int64)


def _followed(data: Buffer, position: int, count: int) -> list[int]:
    """Where each of the next `count` records ends."""
    ends: list[int] = []
    append = ends.append
    for _ in range(count):
        low = data[position]
        if low < 0x80:
            position += 1 + (low >> 1)
        elif (high := data[position + 1]) < 0x80:
            position += 2 + (((high << 7) + low - 0x80) >> 1)
        else:
            raw, position = read_raw_varint(data, position)
            position += raw >> 1
        append(position)
    return ends
