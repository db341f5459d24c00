"""Where batches stand that compaction has emptied, as far as a segment was looked through for them.

Of some batches compaction leaves the bare header. Replicas need those, and so does recovery, but a
consumer finds no record there. Most clients step over such a batch; kafka-go loses its place where
an answer holds nothing else, and reads garbage behind a few of them in a row.

Nothing in a segment's files tells where they are, and they may be in any segment of a compacted
log: a follower copies them into its active one. So a segment is looked through when it is read, no
further than it is read and a bounded stretch at a time, because the disk may have to be waited for.
What was found stays known, for one stretch of the segment: readers go forward, and who reads
elsewhere starts another. Both ends of it are batch boundaries.
"""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_left
from typing import NamedTuple

from headwater.storage.disk.files import File
from headwater.wire.records import HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2, CorruptRecordError

#: One look goes this far, and to the end of a batch.
LOOK_BYTES_MAX = 256 << 10
#: Headers are found in reads of this size: about one index interval.
_READ_BYTES = 4096 + HEADER_SIZE
#: Offset, length, magic, last offset delta and number of records.
_BATCH = struct.Struct(">qi4xb6xi30xi")


class EmptyRun(NamedTuple):
    """Empty batches without another between them."""

    position: int
    end: int
    #: Where the last of them stands.
    last_position: int
    #: The offset behind them.
    next_offset: int


class EmptyBatches:
    """Of one segment. Its owner replaces it when the segment is cut; appends do not matter."""

    def __init__(self, log: File) -> None:
        self._log = log
        self._start = self._end = 0
        #: Each a run of one.
        self._found: list[EmptyRun] = []

    def look(self, position: int, end: int) -> tuple[int, EmptyRun | None]:
        """How far is known what stands from `position` on, up to `end`; and the first empty run.

        The position must be that of a batch, and `end` must lie behind this batch, which is known
        in any case, unless it is damaged: `CorruptRecordError`. Nothing of the run lies outside of
        the two.
        """
        if not self._start <= position <= self._end:
            self._start = self._end = position
            self._found = []
        if self._end < end:
            self._walk(min(end, self._end + LOOK_BYTES_MAX))
        if self._end == position:
            raise CorruptRecordError(f"{self._log.path} has no batch at position {position}.")
        known_end = min(self._end, end)
        found = self._found
        number = bisect_left(found, position, key=_position)
        if number == len(found) or found[number].position >= known_end:
            return known_end, None
        run = found[number]
        for each in itertools.islice(found, number + 1, None):
            if each.position != run.end or each.end > known_end:
                break
            run = EmptyRun(run.position, each.end, each.position, each.next_offset)
        return known_end, run

    def _walk(self, end: int) -> None:
        """Go on from where all is known, to the first batch boundary at or behind `end`.

        It ends early in front of a header that cannot be: what stands before that can be read.
        """
        while self._end < end:
            chunk = self._log.read_at(self._end, _READ_BYTES)
            # A message of an old format at the end of the file may be shorter than a header.
            chunk = chunk.ljust(HEADER_SIZE, b"\0")
            at = 0
            while at + HEADER_SIZE <= len(chunk) and self._end < end:
                base_offset, length, magic, delta, record_count = _BATCH.unpack_from(chunk, at)
                is_empty = magic >= MAGIC_V2 and record_count == 0
                if length <= 0 or (is_empty and delta < 0):
                    return
                position, size = self._end, length + LOG_OVERHEAD
                if is_empty:
                    next_offset = base_offset + delta + 1
                    self._found.append(EmptyRun(position, position + size, position, next_offset))
                at += size
                self._end += size


def _position(run: EmptyRun) -> int:
    return run.position
