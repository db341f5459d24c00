"""The files of a spool from the oldest to the one in use, and what they take of the disk.

A file is forced to disk before the next one is begun, and its name too, so that only the last one
can be torn; with `is_synced` false nothing is. It knows nothing of threads: the spool's lock
protects it.
"""

from __future__ import annotations

import contextlib
from collections import deque

from headwater.client.spool.files.frames import FILE_HEADER_SIZE
from headwater.client.spool.files.local_files import SpoolFiles
from headwater.client.spool.files.segment import Segment, first_number_of


class SegmentList:
    """Never empty once `recover` has run."""

    def __init__(self, files: SpoolFiles, directory: str, *, is_synced: bool) -> None:
        self._files = files
        self._directory = directory
        self._is_synced = is_synced
        self._segments: deque[Segment] = deque()
        self.size_bytes = 0

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def active_is_empty(self) -> bool:
        return self.active.size_bytes == FILE_HEADER_SIZE

    def recover(self, position: int | None) -> tuple[int, int]:
        """Open what is there: the first number that is not delivered, and the next one to use.

        Without an fsync of each record the position may be safe where records were not. Numbers
        below it stay used, or new records would count as delivered.
        """
        numbers = [first_number_of(name) for name in self._files.list_dir(self._directory)]
        first_numbers = sorted(number for number in numbers if number is not None)
        for number in first_numbers:
            self._segments.append(Segment.open(self._files, self._directory, number))
        end = self.active.recover() if first_numbers else 0
        undelivered = max([*first_numbers[:1], position or 0])
        next_number = max(end, undelivered)
        self.size_bytes = sum(segment.size_bytes for segment in self._segments)
        if not first_numbers or end < next_number:
            self.begin(next_number)
        self.remove_delivered(undelivered)
        return undelivered, next_number

    def append(self, frame: bytes) -> None:
        self.active.append(frame)
        self.size_bytes += len(frame)

    def seal(self) -> None:
        """Make the file in use durable, as must be before the next one is begun."""
        if self._is_synced:
            self.active.file.sync()

    def begin(self, first_number: int) -> None:
        """Begin a new file; if that fails nothing has changed."""
        segment = Segment.create(self._files, self._directory, first_number)
        if self._is_synced:
            segment.file.sync()
            self._files.sync_dir(self._directory)
        self._segments.append(segment)
        self.size_bytes += segment.size_bytes

    def remove_delivered(self, position: int) -> None:
        """Take leave of the files that hold nothing from `position` on."""
        while len(self._segments) > 1 and self._segments[1].first_number <= position:
            segment = self._segments.popleft()
            self.size_bytes -= segment.size_bytes
            # Not closed: a caller may be syncing it, and the last who holds it closes it. A file
            # that cannot be removed now is when the directory is next opened.
            with contextlib.suppress(OSError):
                segment.retire()

    def with_ends(self, end: int) -> list[tuple[Segment, int]]:
        """Each segment with the number after its last record, none of them beyond `end`."""
        segments = list(self._segments)
        ends = [min(segment.first_number, end) for segment in segments[1:]]
        return list(zip(segments, [*ends, end], strict=True))

    def close(self) -> None:
        for segment in self._segments:
            segment.file.close()
