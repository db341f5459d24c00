"""A sliding window over one partition's records: which are being handled, and what is done.

Workers finish in any order, but a commit says that everything before an offset is done. So the
window begins at the oldest record that is not done, and slides on when that one is: what is done
behind it waits. Offsets may have gaps, where records were compacted away or are control records.

    begun     4   5   6   8   9
    done          x   x       x      commit 4: a crash repeats 5, 6 and 9, and loses nothing
    done      x   x   x       x      commit 8
"""

from __future__ import annotations

from collections import deque

from headwater.base.checks import check
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata


class OffsetTracker:
    """Not for two threads at a time."""

    __slots__ = ("_done", "_done_epoch", "_next_offset", "_window")

    def __init__(self) -> None:
        #: Offsets with their leader epochs, from the oldest that is not done on.
        self._window: deque[tuple[int, int]] = deque()
        #: Those of the window that are done.
        self._done: set[int] = set()
        self._next_offset: int | None = None
        self._done_epoch = -1

    @property
    def window_size(self) -> int:
        """How many records there are from the oldest that is not done on."""
        return len(self._window)

    @property
    def next_offset(self) -> int | None:
        """One more than the last offset that was begun; None at first."""
        return self._next_offset

    @property
    def committable(self) -> OffsetAndMetadata | None:
        """Up to where everything is done; None if nothing was ever begun."""
        if self._next_offset is None:
            return None
        offset = self._window[0][0] if self._window else self._next_offset
        return OffsetAndMetadata(offset, "", self._done_epoch)

    def begin(self, offset: int, leader_epoch: int = -1) -> None:
        """A record is handed out; offsets grow."""
        check(
            self._next_offset is None or offset >= self._next_offset,
            "offset %d was begun after %s",
            offset,
            self._next_offset,
        )
        self._window.append((offset, leader_epoch))
        self._next_offset = offset + 1

    def finish(self, offset: int) -> None:
        """A record that was begun is done."""
        window, done = self._window, self._done
        check(bool(window) and offset >= window[0][0], "offset %d is not in the window", offset)
        check(offset not in done, "offset %d was done twice", offset)
        done.add(offset)
        while window and window[0][0] in done:
            first, self._done_epoch = window.popleft()
            done.remove(first)
