"""Files that are no longer part of a log, on their way to being removed.

A segment that leaves the log is renamed to `.deleted` at once and removed `file.delete.delay.ms`
later, so that readers which were given a region of it can finish. A crash in between loses nothing:
recovery removes whatever carries the suffix.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from headwater.storage.disk.files import FileSystem
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import DELETED


class RetiredFiles:
    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._waiting: deque[tuple[int, LogSegment]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for _, segment in self._waiting)

    def retire(self, segments: Iterable[LogSegment], due_ms: int) -> None:
        """Take segments out of sight; the caller has removed them from the log."""
        for segment in segments:
            segment.is_removed = True
            self._make_way_for(segment)
            segment.move_to_stage(DELETED)
            self._waiting.append((due_ms, segment))

    def _make_way_for(self, segment: LogSegment) -> None:
        """An earlier segment of the same base offset goes at once: it has the name."""
        for entry in [e for e in self._waiting if e[1].base_offset == segment.base_offset]:
            self._waiting.remove(entry)
            entry[1].remove_files()

    def take_due(self, now_ms: int) -> list[LogSegment]:
        """The segments whose time has come; `remove_files` of each may run in another thread."""
        due = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            due.append(self._waiting.popleft()[1])
        return due

    def remove_due(self, now_ms: int) -> int:
        """Remove what is due here and now; returns how many segments that were."""
        due = self.take_due(now_ms)
        for segment in due:
            segment.remove_files()
        return len(due)

    def close(self) -> None:
        for _, segment in self._waiting:
            segment.close()
