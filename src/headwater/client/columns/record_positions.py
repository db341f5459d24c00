"""Where each record ends: the one thing that cannot be read for all records at once.

A record's end is known only from its begin, which is the end of the one before. But records of one
size, which their producer wrote one after the other, are a fixed step apart: whether all of them
begin with the same length is seen in one comparison, and then the step is right for all of them.
And a producer of such records makes many batches that are divided in the same way. Where sizes
differ, a loop follows the lengths, and looks at nothing else of a record.

Batches lie one after the other, so all their records are one chain, which must come to the end of a
batch when its records are counted.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from headwater.client.columns.varint_arrays import Bytes, Longs
from headwater.wire.records import CorruptRecordError
from headwater.wire.records.varint import read_raw_varint

#: A comparison pays from about so many records on.
_RUN_RECORDS_MIN: Final = 48
#: So many records are followed by the loop after a comparison that did not pay.
_LOOP_RECORDS: Final = 512


class BrokenChainError(Exception):
    """The lengths do not lead from the first record of a batch to its end."""


class SectionShape(NamedTuple):
    size_bytes: int
    record_count: int


class RecordChain:
    """Follows the records through the sections of `data`, one after the other."""

    def __init__(self, data: bytes, array: Bytes) -> None:
        self._data = data
        self._array = array
        #: How sections of equal records were divided, relative to their begins.
        self._divisions: dict[SectionShape, Longs] = {}

    def ends(self, shapes: Sequence[SectionShape], *, is_guessing: bool) -> Longs:
        """Where each record ends. Lengths are followed, not checked: one may be negative.

        Guessing takes sections of one shape for divided in the same way once one of them was found
        to consist of equal records, and looks at three records of a short section only; the lengths
        must then be compared with the result.
        """
        parts: list[Longs] = []
        followed: list[int] = []
        position = 0
        try:
            for shape in shapes:
                end = position + shape.size_bytes
                division = self._divisions.get(shape) if is_guessing else None
                if division is not None:
                    _flush(followed, parts)
                    parts.append(division + position)
                elif shape.record_count < _RUN_RECORDS_MIN:
                    if is_guessing and self._seems_equal(shape, position):
                        step = shape.size_bytes // shape.record_count
                        followed += range(position + step, end + 1, step)
                    else:
                        followed += self._followed(position, shape.record_count)
                    if (followed[-1] if shape.record_count else position) != end:
                        raise BrokenChainError
                else:
                    _flush(followed, parts)
                    parts.append(self._divided(shape, position, end))
                position = end
        except (IndexError, CorruptRecordError):
            raise BrokenChainError from None
        _flush(followed, parts)
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _seems_equal(self, shape: SectionShape, start: int) -> bool:
        """Whether the first, second and last record begin alike if all have the same size."""
        size_bytes, count = shape
        if count < 4 or size_bytes % count:
            return False
        data, step = self._data, size_bytes // count
        last = start + size_bytes - step
        begin = data[start : start + 2]
        return data[start + step : start + step + 2] == begin == data[last : last + 2]

    def _divided(self, shape: SectionShape, start: int, end: int) -> Longs:
        """The ends of one section's records."""
        parts: list[Longs] = []
        position = start
        left = shape.record_count
        has_runs = False
        while left:
            ends = self._followed(position, min(2, left))
            if left >= _RUN_RECORDS_MIN and ends[1] - ends[0] == ends[0] - position:
                run = self._equal_run(position, end, left)
                is_run = len(run) >= _RUN_RECORDS_MIN
                has_runs = has_runs or is_run
            else:
                run = np.zeros(0, np.int64)
                is_run = False
            if not is_run:
                ends = self._followed(position, min(left, _LOOP_RECORDS))
                run = np.array(ends, np.int64)
            parts.append(run)
            left -= len(run)
            position = int(run[-1])
        if position != end:
            raise BrokenChainError
        ends_of_all = np.concatenate(parts)
        if has_runs:
            self._divisions[shape] = ends_of_all - start
        return ends_of_all

    def _equal_run(self, position: int, end: int, count_max: int) -> Longs:
        """The ends of the record at `position` and of all directly after it of the same length."""
        data, array = self._data, self._array
        raw, content = read_raw_varint(data, position)
        size = content + (raw >> 1) - position
        count = min(count_max, (end - position) // size)
        stop = position + count * size
        equal = array[position:stop:size] == data[position]
        for index in range(position + 1, content):
            equal &= array[index:stop:size] == data[index]
        if not equal.all():
            count = int(equal.argmin())
        return np.arange(position + size, position + count * size + 1, size, dtype=np.int64)

    def _followed(self, position: int, count: int) -> list[int]:
        """Where each of the next `count` records ends."""
        data = self._data
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


def _flush(followed: list[int], parts: list[Longs]) -> None:
    if followed:
        parts.append(np.array(followed, np.int64))
        followed.clear()
