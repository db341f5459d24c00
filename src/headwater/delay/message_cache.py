"""Messages that were read shortly before they are due, within a bound of bytes."""

from __future__ import annotations

from typing import Final

from headwater.wire.delayed.delayed_batch import DelayedRecord

CACHE_BYTES_MAX: Final = 16 << 20


class MessageCache:
    """By the offset at which each lies."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._messages: dict[int, DelayedRecord] = {}
        self._bytes = 0

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

    def drop(self, offset: int) -> None:
        message = self._messages.pop(offset, None)
        if message is not None:
            self._bytes -= len(message.value)

    def clear(self) -> None:
        self._messages.clear()
        self._bytes = 0
