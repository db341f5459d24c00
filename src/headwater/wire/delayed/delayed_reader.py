"""Reading single records of a delayed batch, where it lies in its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from headwater.wire.delayed.delayed_batch import PLACES_STEP, DelayedRecord, read_delayed_record
from headwater.wire.records.batch_header import HEADER_SIZE, read_batch_header
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record_section import read_records
from headwater.wire.records.varint import VARLONG_BYTES_MAX, read_raw_varint

#: The header of a batch, and of its first record all but the value.
_START_BYTES: Final = 1024

#: Reads so many bytes from a position of a batch, fewer where the file ends.
ReadAt: TypeAlias = Callable[[int, int], bytes]


class DelayedBatchReader:
    """Reads single records of one delayed batch, and no other whole.

    What was read for one record is kept for the next, which is often its neighbour. The batch's
    checksum is not looked at.
    """

    def __init__(self, read_at: ReadAt) -> None:
        """`InvalidRecordError` if it is no delayed batch that `read_at` reads."""
        self._read_at = read_at
        self._start = read_at(0, _START_BYTES)
        self._header = read_batch_header(self._start)
        if not self._header.is_delayed:
            raise InvalidRecordError("There is no delayed batch where one was expected.")
        self._places_at: int | None = None
        self._step = -1
        self._chunk = b""

    @property
    def is_transactional(self) -> bool:
        return self._header.is_transactional

    def read(self, offset: int) -> DelayedRecord:
        """The record at an offset; `InvalidRecordError` if there is none."""
        number = offset - self._header.base_offset
        if not 0 <= number < self._header.record_count:
            raise InvalidRecordError(f"There is no delayed record at offset {offset}.")
        try:
            chunk, at = self._chunk_of(number // PLACES_STEP), 0
            for _ in range(number % PLACES_STEP):
                at = _record_end(chunk, at)
            alone = chunk[at : _record_end(chunk, at)]
            records, _ = read_records(alone, 0, 1, self._header)
        except (IndexError, CorruptRecordError):
            raise InvalidRecordError(f"The delayed record at offset {offset} is damaged.") from None
        if records[0].offset != offset:
            raise InvalidRecordError(f"There is no delayed record at offset {offset}.")
        return read_delayed_record(records[0])

    def _chunk_of(self, step: int) -> bytes:
        """The records that share an entry of the table."""
        if step == self._step:
            return self._chunk
        position, end = HEADER_SIZE, self._header.size_bytes
        has_next = (step + 1) * PLACES_STEP < self._header.record_count
        if step > 0 or has_next:
            if self._places_at is None:
                self._places_at = _find_places(self._start, self._read_at)
            packed = self._read_at(self._places_at + 4 * max(step - 1, 0), 8)
            first, second = int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:], "big")
            if step > 0:
                position += first
            if has_next:
                end = HEADER_SIZE + (second if step > 0 else first)
        self._chunk = (
            self._start[position:end]
            if end <= len(self._start)
            else self._read_at(position, end - position)
        )
        self._step = step
        return self._chunk


def _record_end(chunk: bytes, at: int) -> int:
    raw = chunk[at]
    if raw < 0x80:
        return at + 1 + (raw >> 1)
    raw, position = read_raw_varint(chunk, at)
    return position + (raw >> 1)


def _find_places(start: bytes, read_at: ReadAt) -> int:
    """Where in a batch the table of places begins: behind the value of its first record."""
    _, position = read_raw_varint(start, HEADER_SIZE)
    position += 1  # Its attributes.
    for _ in range(2):  # Its time and its offset.
        _, position = read_raw_varint(start, position, VARLONG_BYTES_MAX)
    for _ in range(2):  # Its key, which is short, and its value, which may not be.
        raw, position = read_raw_varint(start, position)
        position += raw >> 1
    rest = read_at(position, 32)
    _, at = read_raw_varint(rest, 0)  # The number of headers.
    raw, at = read_raw_varint(rest, at)
    at += raw >> 1
    _, at = read_raw_varint(rest, at)
    return position + at
