"""Checking a segment's hidden index while its log is walked once.

A stretch that the index lacks shows consumers what they must not see, and one that it has too many
hides their records from them. So each must begin and end just where the log has delayed batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.storage.indexes.hidden_index import HiddenStretch
from headwater.storage.inspection.index_entries import HIDDEN_ENTRY
from headwater.storage.inspection.verify.indexes import Complain
from headwater.wire.records import BatchHeader


class HiddenIndexCheck:
    """Every stretch of the log is in the index, and no other.

    While a log is written to the newest are in memory.
    """

    def __init__(
        self, entries: Iterator[HiddenStretch], complain: Complain, *, may_lack_newest: bool
    ) -> None:
        self._entries = enumerate(entries)
        self._complain = complain
        self._running: HiddenStretch | None = None
        self._may_lack_newest = may_lack_newest
        self._is_blind = False

    def see(self) -> None:
        """A batch of the log that consumers see."""
        self._end_stretch()

    def see_hidden(self, position: int, header: BatchHeader) -> None:
        """A delayed batch."""
        running = self._running
        first = header.base_offset if running is None else running.first_offset
        start = position if running is None else running.position
        end = position + header.size_bytes
        self._running = HiddenStretch(first, header.next_offset, start, end, -1)

    def _end_stretch(self) -> None:
        running, self._running = self._running, None
        if running is None or self._is_blind:
            return
        number, entry = next(self._entries, (None, None))
        extent = (
            f"offsets {running.first_offset} to {running.next_offset - 1} at positions "
            f"{running.position} to {running.end}"
        )
        if entry is None or number is None:
            self._is_blind = True  # Once is enough.
            if not self._may_lack_newest:
                self._complain(None, f"it lacks {extent} of the log, which are hidden")
        elif entry[:4] != running[:4]:
            self._complain(
                number * HIDDEN_ENTRY.size,
                f"it hides offsets {entry.first_offset} to {entry.next_offset - 1} at positions "
                f"{entry.position} to {entry.end}, but the log has {extent} to hide",
            )
            self._is_blind = True  # What follows would be compared with the wrong one.

    def skip(self) -> None:
        """The log is damaged: from here on it is not certain what is to be hidden."""
        self._running = None
        self._is_blind = True

    def finish(self) -> None:
        """The log ends."""
        self._end_stretch()
        for number, entry in self._entries if not self._is_blind else ():
            self._complain(
                number * HIDDEN_ENTRY.size,
                f"it hides offsets {entry.first_offset} to {entry.next_offset - 1}, where the log "
                "has nothing to hide",
            )
