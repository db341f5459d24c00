"""How many messages of a log wait for their delivery, and in which of its segments.

What waits lies in the log and nowhere else, so a segment that holds some of it must not go. Who
delivers keeps the count (`headwater.delay`); retention and appends ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.wire.delayed.delayed_batch import DelayedRecord
from headwater.wire.records.batch_header import HEADER_SIZE

#: An entry of the index of what waits, in memory or in a file.
INDEX_BYTES_EACH: Final = 24


def log_bytes_of(messages: Sequence[DelayedRecord]) -> list[int]:
    """How much of the log each message of a batch takes, with its part of the batch's header."""
    if not messages:
        return []
    part = HEADER_SIZE // len(messages)
    return [each.stored_bytes + part for each in messages]


class WaitingMessages:
    """Of one log. Its owner is whoever delivers; until that one knows all, every segment stays."""

    __slots__ = ("_emptied", "_segments", "bytes", "count", "is_complete")

    def __init__(self) -> None:
        #: Number and bytes by the base offset of the segment.
        self._segments: dict[int, tuple[int, int]] = {}
        #: By the same, the end of the log when the last one went that had waited there.
        self._emptied: dict[int, int] = {}
        self.count = 0
        #: What they take of the log: see `log_bytes_of`.
        self.bytes = 0
        self.is_complete = False

    @property
    def held_bytes(self) -> int:
        """What they take of log and index, which is what `delay.pending.max.bytes` bounds."""
        return self.bytes + self.count * INDEX_BYTES_EACH

    def holds(self, base_offset: int, high_watermark: int) -> bool:
        """Whether the segment must stay, for what waits in it.

        It stays until the copies of what waited there are safe: the next leader may not have them.
        """
        if not self.is_complete or base_offset in self._segments:
            return True
        return self._emptied.get(base_offset, 0) > high_watermark

    def add(self, base_offset: int, size_bytes: int) -> None:
        count, total_bytes = self._segments.get(base_offset, (0, 0))
        self._segments[base_offset] = (count + 1, total_bytes + size_bytes)
        self.count += 1
        self.bytes += size_bytes

    def remove(self, base_offset: int, end_offset: int) -> None:
        """One message less, by what lies in front of `end_offset`.

        Its size is not asked for, and the segment's mean stands for it.
        """
        count, total_bytes = self._segments.get(base_offset, (0, 0))
        if count == 0:
            return  # It went with its segment.
        size_bytes = total_bytes // count
        if count == 1:
            del self._segments[base_offset]
            self._emptied[base_offset] = end_offset
        else:
            self._segments[base_offset] = (count - 1, total_bytes - size_bytes)
        self.count -= 1
        self.bytes -= size_bytes

    def drop(self, base_offset: int) -> int:
        """A segment is deleted with all that waits in it; how many that were."""
        self._emptied.pop(base_offset, None)
        count, total_bytes = self._segments.pop(base_offset, (0, 0))
        self.count -= count
        self.bytes -= total_bytes
        return count

    @property
    def segments(self) -> list[int]:
        """The base offsets of the segments with something that waits, in order."""
        return sorted(self._segments)

    def clear(self) -> None:
        self._segments.clear()
        self._emptied.clear()
        self.count = self.bytes = 0
        self.is_complete = False

    def as_json(self) -> dict[str, list[int]]:
        return {str(base): list(each) for base, each in self._segments.items()}

    def load_json(self, segments: dict[str, list[int]]) -> None:
        self.clear()
        for base, (count, total_bytes) in segments.items():
            self._segments[int(base)] = (count, total_bytes)
            self.count += count
            self.bytes += total_bytes
