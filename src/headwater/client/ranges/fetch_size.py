"""How many bytes to ask for, so that a fetch brings little more than what is left of a range.

Sans-io. A broker sends as much as it is allowed to, also beyond the end of a range, where somebody
else reads: a range of few records would bring megabytes that nobody needs. So the size is guessed
from what the offsets before needed. Too little costs one more round trip, and a broker always sends
a whole batch.
"""

from __future__ import annotations

from typing import Final

#: Before anything is known of a range, so much is taken for a record.
_FIRST_GUESS_BYTES: Final = 1024
#: Guesses are raised by a quarter, so that usually one fetch is enough.
_RAISED: Final = 1.25
_SIZE_MIN_BYTES: Final = 64 << 10


class FetchSize:
    """Learns from one fetch after the other."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._offset_count = 0
        self._size_bytes = 0

    def next_bytes(self, offsets_left: int) -> int:
        """How much to ask for when so many offsets are left."""
        each = self._size_bytes / self._offset_count if self._offset_count else _FIRST_GUESS_BYTES
        wanted = int(each * offsets_left * _RAISED)
        return min(self._max_bytes, max(_SIZE_MIN_BYTES, wanted))

    def learn(self, offset_count: int, size_bytes: int) -> None:
        """A fetch has brought so many offsets in so many bytes."""
        self._offset_count += offset_count
        self._size_bytes += size_bytes
