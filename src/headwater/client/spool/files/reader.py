"""Reads a spool's records in order, from a number on, as far as they may be shipped."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from headwater.client.spool.errors import SpoolDamagedError
from headwater.client.spool.files.frames import FILE_HEADER_SIZE, FRAME_OVERHEAD, Frame
from headwater.client.spool.files.record import SpooledRecord, decode_record
from headwater.client.spool.files.segment import Segment
from headwater.client.spool.spool import Spool


class NumberedRecord(NamedTuple):
    number: int
    record: SpooledRecord


class SpoolReader:
    """For one thread. What it has read stays in the spool until that is advanced."""

    def __init__(self, spool: Spool, number: int) -> None:
        #: The number of the record that `read` would return next, or a smaller one that is gone.
        self.next_number = number
        self._spool = spool
        self._frames: deque[Frame] = deque()
        self._segment: Segment | None = None
        self._scan_number = number
        self._scan_position = FILE_HEADER_SIZE

    def read(self) -> NumberedRecord | None:
        """The next record, None if there is none yet.

        Raises `SpoolDamagedError` once for each file that has become unreadable somewhere, and goes
        on behind it: `next_number` then says how far that is.
        """
        if not self._frames and not self._scan():
            return None
        frame = self._frames.popleft()
        self.next_number = frame.number + 1
        return NumberedRecord(frame.number, decode_record(frame.content))

    def _scan(self) -> bool:
        """Fetch more frames; whether there are any."""
        for segment, end in self._spool.readable_segments():
            if end <= self.next_number and segment is not self._segment:
                continue
            if segment is not self._segment:
                self._segment = segment
                self._scan_number = segment.first_number
                self._scan_position = FILE_HEADER_SIZE
            while self._scan_number < end and self._scan_position < segment.size_bytes:
                self._scan_chunk(segment, end)
                if self._frames:
                    return True
            self.next_number = max(self.next_number, end)
        return False

    def _scan_chunk(self, segment: Segment, end: int) -> None:
        scanned = segment.scan(self._scan_number, self._scan_position)
        if not scanned.frames:
            path = self._spool.give_up_rest(segment)
            first, self.next_number = max(self.next_number, self._scan_number), end
            self._scan_number = end
            raise SpoolDamagedError(
                f"The records {first} to {end - 1} of the spool cannot be read any more; their file"
                f" will be kept as {path}."
            )
        for frame in scanned.frames:
            if frame.number >= end:
                break
            self._scan_number += 1
            self._scan_position += FRAME_OVERHEAD + len(frame.content)
            if frame.number >= self.next_number:
                self._frames.append(frame)
