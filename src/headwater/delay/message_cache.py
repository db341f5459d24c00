"""Messages that were read shortly before they are due, within a bound of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.wire.delayed.delayed_batch import DelayedRecord

CACHE_BYTES_MAX: Final = 16 << 20


class MessageCache:
    """By the offset at which each lies."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._messages: dict[int, DelayedRecord] = {}
        self._bytes = 0
        #: What nobody wants any more of what is being read; None if nothing is.
        self._dropped: set[int] | None = None

    def __contains__(self, offset: int) -> bool:
        return offset in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._bytes_max

    def get(self, offset: int) -> DelayedRecord | None:
        return self._messages.get(offset)

    def put(self, message: DelayedRecord) -> None:
        """Keep it, whatever its size: the one that is due next must be had."""
        if message.offset not in self._messages:
            self._messages[message.offset] = message
            self._bytes += len(message.value)

    def begin_reading(self) -> None:
        """A thread reads messages from now on: what is dropped meanwhile shall not come back."""
        self._dropped = set()

    def end_reading(self, messages: Iterable[DelayedRecord]) -> None:
        dropped, self._dropped = self._dropped or (), None
        for message in messages:
            if message.offset not in dropped:
                self.put(message)

    def drop(self, offset: int) -> None:
        if self._dropped is not None:
            self._dropped.add(offset)
        message = self._messages.pop(offset, None)
        if message is not None:
            self._bytes -= len(message.value)

    def clear(self) -> None:
        self._messages.clear()
        self._bytes = 0
        self._dropped = None
